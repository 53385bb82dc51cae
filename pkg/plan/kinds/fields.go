package kinds

import (
	"maps"
	"path"
	"slices"
	"strings"
)

// Types are the values of a node's type. The zero value takes any.
type Types struct {
	// Default becomes the type of a node that has none. Assumed is only used to
	// look up Values then.
	Default string `yaml:"default" json:"default,omitempty"`
	Assumed string `yaml:"assumed" json:"assumed,omitempty"`
	// ByImage are the types of nodes that have none, by a text in the last part of
	// their image's name, in any case.
	ByImage map[string]string `yaml:"byImage" json:"byImage,omitempty"`
	// Required refuses a node without a type.
	Required bool `yaml:"required" json:"required,omitempty"`
	// IgnoreCase compares types in lower case.
	IgnoreCase bool `yaml:"ignoreCase" json:"ignoreCase,omitempty"`
	// Open takes types that Values does not have.
	Open bool `yaml:"open" json:"open,omitempty"`
	// Values maps each type to properties, which templates see as .TypeData.
	// Empty means that any type is taken.
	Values map[string]map[string]string `yaml:"values" json:"values,omitempty"`
}

// FromImage returns the type that the name of an image stands for, "" for none.
func (t Types) FromImage(image string) string {
	last := strings.ToLower(path.Base(image))
	for _, part := range slices.Sorted(maps.Keys(t.ByImage)) {
		if strings.Contains(last, part) {
			return t.ByImage[part]
		}
	}
	return ""
}

// Container is the kind's part of a container. Values are templates; a sysctl or
// a mount whose text comes out empty is left out.
type Container struct {
	// Image is used where the node names none.
	Image string `yaml:"image" json:"image,omitempty"`
	// Env is overridden by the user's, EnvForce overrides it.
	Env      map[string]string `yaml:"env" json:"env,omitempty"`
	EnvForce map[string]string `yaml:"envForce" json:"envForce,omitempty"`
	// Entrypoint and Cmd apply where the user gave none, with Force always.
	Entrypoint      []string `yaml:"entrypoint" json:"entrypoint,omitempty"`
	EntrypointForce bool     `yaml:"entrypointForce" json:"entrypointForce,omitempty"`
	Cmd             []string `yaml:"cmd" json:"cmd,omitempty"`
	CmdForce        bool     `yaml:"cmdForce" json:"cmdForce,omitempty"`
	// User applies where the user gave none.
	User string `yaml:"user" json:"user,omitempty"`
	// Sysctls and Tmpfs override the user's.
	Sysctls map[string]string `yaml:"sysctls" json:"sysctls,omitempty"`
	Tmpfs   map[string]string `yaml:"tmpfs" json:"tmpfs,omitempty"`
	// CapAdd and Devices come after the user's.
	CapAdd  []string `yaml:"capAdd" json:"capAdd,omitempty"`
	Devices []string `yaml:"devices" json:"devices,omitempty"`
	// ShmSize and Memory are bytes, for nodes that say nothing.
	ShmSize string `yaml:"shmSize" json:"shmSize,omitempty"`
	Memory  string `yaml:"memory" json:"memory,omitempty"`
	// RestartPolicy is containerlab's word, for nodes that say nothing.
	RestartPolicy string `yaml:"restartPolicy" json:"restartPolicy,omitempty"`
	// MgmtMAC is the MAC address of eth0.
	MgmtMAC string  `yaml:"mgmtMAC" json:"mgmtMAC,omitempty"`
	Mounts  []Mount `yaml:"mounts" json:"mounts,omitempty"`
	// NoIntfs leaves out CLAB_INTFS, the number of data interfaces.
	NoIntfs bool `yaml:"noIntfs" json:"noIntfs,omitempty"`
}

// Mount puts a path of the node's folder, or of the worker (Host), at Target. A
// mount of the user with the same target takes its place.
type Mount struct {
	Path     string `yaml:"path" json:"path,omitempty"`
	Host     string `yaml:"host" json:"host,omitempty"`
	Target   string `yaml:"target" json:"target"`
	ReadOnly bool   `yaml:"readOnly" json:"readOnly,omitempty"`
	// When is a template: the mount is left out where it comes out empty.
	When string `yaml:"when" json:"when,omitempty"`
}

// File is an entry of the node's folder: a folder (Dir), a symbolic link (Link),
// issued material (Certificate: ca.crt, tls.crt or tls.key), or a file with
// Content or the text of a template file beside the catalogue (Template).
type File struct {
	Path        string `yaml:"path" json:"path"`
	Mode        uint32 `yaml:"mode" json:"mode,omitempty"`
	GID         int    `yaml:"gid" json:"gid,omitempty"`
	Dir         bool   `yaml:"dir" json:"dir,omitempty"`
	Link        string `yaml:"link" json:"link,omitempty"`
	Certificate string `yaml:"certificate" json:"certificate,omitempty"`
	Content     string `yaml:"content" json:"content,omitempty"`
	Template    string `yaml:"template" json:"template,omitempty"`
	// Seed lets the device's own version win.
	Seed bool `yaml:"seed" json:"seed,omitempty"`
	// When is a template: the file is left out where it comes out empty.
	When string `yaml:"when" json:"when,omitempty"`
}

// Startup says what becomes of startup-config. The zero value ignores it.
type Startup struct {
	// File is where the configuration lies in the node's folder.
	File string `yaml:"file" json:"file,omitempty"`
	Mode uint32 `yaml:"mode" json:"mode,omitempty"`
	GID  int    `yaml:"gid" json:"gid,omitempty"`
	// Default is the template file of the configuration of a node without one.
	Default string `yaml:"default" json:"default,omitempty"`
	// Empty makes an empty file where there is neither.
	Empty bool `yaml:"empty" json:"empty,omitempty"`
	// Raw takes the user's file as it is; otherwise its variables are expanded
	// and it is executed as a template.
	Raw bool `yaml:"raw" json:"raw,omitempty"`
	// Data is what the user's template sees: "node" (the default), "ios" (the
	// fields of cisco_iol and cisco_vios, without expansion of variables).
	Data string `yaml:"data" json:"data,omitempty"`
	// Partial is what a partial configuration means: "whole" (the default, as
	// any other), "merge" (into Default, as .PartialCfg), "append" (after
	// Default), "only" (no other is taken) or "none" (not applied).
	Partial string `yaml:"partial" json:"partial,omitempty"`
	// Extensions maps the extensions of the file that are taken to File.
	Extensions map[string]string `yaml:"extensions" json:"extensions,omitempty"`
	// Append is the template file of what follows every configuration.
	Append string `yaml:"append" json:"append,omitempty"`
	// Rewritten makes the file anew at every start; otherwise what the device
	// has saved there wins unless enforce-startup-config is set.
	Rewritten bool `yaml:"rewritten" json:"rewritten,omitempty"`
}

// Save is how the running configuration of a node is saved: a command in its first
// container, or a session with the device over SSH or NETCONF, prints it or writes it to a
// file in the container. NETCONF comes first if there are several.
type Save struct {
	// NETCONF and SSH are sessions with the device, with the credentials of the kind.
	NETCONF *SaveNETCONF `yaml:"netconf" json:"netconf,omitempty"`
	SSH     *SaveSSH     `yaml:"ssh" json:"ssh,omitempty"`
	// Argv is the command, Input its standard input.
	Argv  []string `yaml:"argv" json:"argv,omitempty"`
	Input string   `yaml:"input" json:"input,omitempty"`
	// Fetch is the file in the container that has the configuration afterwards; without
	// it, the output of the command is the configuration.
	Fetch string `yaml:"fetch" json:"fetch,omitempty"`
	// Strict is set for commands whose only sign of a failure is output on standard error.
	Strict bool `yaml:"strict" json:"strict,omitempty"`
	// Extension is that of the saved file, without the dot.
	Extension string `yaml:"extension" json:"extension,omitempty"`
	// Drop are regular expressions of lines that are no part of the configuration.
	Drop []string `yaml:"drop" json:"drop,omitempty"`
	// Ignore are regular expressions of lines that comparisons leave out. Blocks is set if
	// the order of lines that are not indented has no meaning.
	Ignore []string `yaml:"ignore" json:"ignore,omitempty"`
	Blocks bool     `yaml:"blocks" json:"blocks,omitempty"`
	// Binary is set for a configuration that is not text.
	Binary bool `yaml:"binary" json:"binary,omitempty"`
	// Probe is a command that succeeds only in containers whose configuration can be
	// saved; Without explains why the others have none.
	Probe   []string `yaml:"probe" json:"probe,omitempty"`
	Without string   `yaml:"without" json:"without,omitempty"`
	// Target is where the saved file is mounted if the kind reads no startup-config.
	Target string `yaml:"target" json:"target,omitempty"`
}

// Reset is how a device goes back to its declared configuration without a restart: a command in
// its first container.
type Reset struct {
	// Probe is a command that succeeds only in containers where the reset works.
	Probe []string `yaml:"probe" json:"probe,omitempty"`
	// Put is where the declared configuration is written first. Without it, the device has it.
	Put string `yaml:"put" json:"put,omitempty"`
	// Argv is the command, Input its standard input.
	Argv  []string `yaml:"argv" json:"argv"`
	Input string   `yaml:"input" json:"input,omitempty"`
	// Fails is a regular expression of lines that report an error. Strict is set for commands
	// whose only sign of a failure is output on standard error.
	Fails  string `yaml:"fails" json:"fails,omitempty"`
	Strict bool   `yaml:"strict" json:"strict,omitempty"`
}

// SaveSSH is a session with the device's command line: lines that are typed, each when the
// device has prompted for it. The output of the last one is the configuration. With Exec, each
// is a command of its own instead, for devices that run those without a terminal.
type SaveSSH struct {
	Lines []string `yaml:"lines" json:"lines"`
	Exec  bool     `yaml:"exec" json:"exec,omitempty"`
	// Fails is a regular expression of outputs that report an error.
	Fails string `yaml:"fails" json:"fails,omitempty"`
	// Port is 22 by default.
	Port uint16 `yaml:"port" json:"port,omitempty"`
}

// SaveNETCONF is a session by NETCONF over SSH: Copy is the datastore that the running
// configuration is copied to, Get the one whose contents are the configuration, as XML.
type SaveNETCONF struct {
	Copy string `yaml:"copy" json:"copy,omitempty"`
	Get  string `yaml:"get" json:"get,omitempty"`
	// Port is 830 by default.
	Port uint16 `yaml:"port" json:"port,omitempty"`
}

// Neighbours reads the neighbours of a protocol: a command that prints JSON, and a template
// over that, which writes a line for each neighbour: its addresses, ids and names with spaces
// between, its interface and its state, with "|" between.
type Neighbours struct {
	Argv []string `yaml:"argv" json:"argv"`
	Read string   `yaml:"read" json:"read"`
	// Up is a regular expression of the states in which a neighbour is up.
	Up string `yaml:"up" json:"up"`
}

// SavedFolder is the folder of saved configurations next to the topology.
const SavedFolder = "configs"

// File returns the name of the file with the saved configuration of a node.
func (s *Save) File(node string) string {
	if s.Extension == "" {
		return node
	}
	return node + "." + s.Extension
}

// Text reports whether the saved configuration is text.
func (s *Save) Text() bool { return !s.Binary }

// License says what becomes of license.
type License struct {
	// Policy is "required", "warn" or "".
	Policy string `yaml:"policy" json:"policy,omitempty"`
	// File is where the licence lies in the node's folder, "" to ignore it.
	File string `yaml:"file" json:"file,omitempty"`
	// InConfig is set if the default configuration holds its text.
	InConfig bool `yaml:"inConfig" json:"inConfig,omitempty"`
}

// Step is one thing to do in the running container: exactly one of Run, Wait,
// Write and CLI.
type Step struct {
	Name  string     `yaml:"name" json:"name,omitempty"`
	Run   *RunStep   `yaml:"run" json:"run,omitempty"`
	Wait  *WaitStep  `yaml:"wait" json:"wait,omitempty"`
	Write *WriteStep `yaml:"write" json:"write,omitempty"`
	CLI   *CLIStep   `yaml:"cli" json:"cli,omitempty"`
	// When is a template: the step is left out where it comes out empty.
	When string `yaml:"when" json:"when,omitempty"`
}

// RunStep runs a command; Detach does not wait for its end.
type RunStep struct {
	Argv   []string `yaml:"argv" json:"argv"`
	Detach bool     `yaml:"detach" json:"detach,omitempty"`
}

// WaitStep repeats a command until it succeeds and prints Contains. Times are in
// seconds, a Timeout of 0 has no end.
type WaitStep struct {
	Argv        []string `yaml:"argv" json:"argv"`
	Contains    string   `yaml:"contains" json:"contains,omitempty"`
	EmptyStderr bool     `yaml:"emptyStderr" json:"emptyStderr,omitempty"`
	Interval    int      `yaml:"interval" json:"interval,omitempty"`
	Timeout     int      `yaml:"timeout" json:"timeout,omitempty"`
}

// WriteStep writes the text of a template file into the container.
type WriteStep struct {
	Path     string `yaml:"path" json:"path"`
	Mode     uint32 `yaml:"mode" json:"mode,omitempty"`
	Template string `yaml:"template" json:"template,omitempty"`
}

// CLIStep types lines into an interactive program. Each entry of Lines is a
// template, of which every line that is not empty is typed.
type CLIStep struct {
	Argv  []string `yaml:"argv" json:"argv"`
	Lines []string `yaml:"lines" json:"lines"`
}

// Readiness is a healthcheck in Docker's form; times are in seconds.
type Readiness struct {
	Test        []string `yaml:"test" json:"test"`
	Interval    int      `yaml:"interval" json:"interval,omitempty"`
	Timeout     int      `yaml:"timeout" json:"timeout,omitempty"`
	Retries     int      `yaml:"retries" json:"retries,omitempty"`
	StartPeriod int      `yaml:"startPeriod" json:"startPeriod,omitempty"`
	// Reason is "kind", or "image" where it repeats the image's own.
	Reason string `yaml:"reason" json:"reason,omitempty"`
	// Force overrides the healthcheck of the topology.
	Force bool `yaml:"force" json:"force,omitempty"`
}

// Port is a port on which a device is managed: what it speaks there ("ssh", "netconf",
// "gnmi"), its number and "tcp" (the default) or "udp".
type Port struct {
	Name     string `yaml:"name" json:"name"`
	Port     uint16 `yaml:"port" json:"port"`
	Protocol string `yaml:"protocol" json:"protocol,omitempty"`
}

// Needs is what the worker must offer: MinCPU in cores, MinMemory in GiB.
type Needs struct {
	SSSE3     bool `yaml:"ssse3" json:"ssse3,omitempty"`
	MinCPU    int  `yaml:"minCPU" json:"minCPU,omitempty"`
	MinMemory int  `yaml:"minMemory" json:"minMemory,omitempty"`
}
