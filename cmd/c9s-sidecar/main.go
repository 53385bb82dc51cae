// Command c9s-sidecar is what c9s has in a Pod: it writes files before the
// devices start, makes and keeps the Pod's network (wire), runs a
// node's commands in the device's container (exec), opens connections to the node for
// its users (dial), tests its links and paths (measure), and prints the state (status). For c9s doctor it tries what the
// kernel can do (probe).
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/sidecar/api"
	"github.com/c9s-lab/c9s/sidecar/capture"
	"github.com/c9s-lab/c9s/sidecar/dial"
	"github.com/c9s-lab/c9s/sidecar/execute"
	"github.com/c9s-lab/c9s/sidecar/hold"
	"github.com/c9s-lab/c9s/sidecar/ifaces"
	"github.com/c9s-lab/c9s/sidecar/inside"
	"github.com/c9s-lab/c9s/sidecar/machine"
	"github.com/c9s-lab/c9s/sidecar/measure"
	"github.com/c9s-lab/c9s/sidecar/podnet"
	"github.com/c9s-lab/c9s/sidecar/prepare"
	"github.com/c9s-lab/c9s/sidecar/probe"
)

// Version is set by the build, and is c9s' own.
var Version = "dev"

// usage is in one place, since it is short.
const usage = `Usage:
  c9s-sidecar wire                     write the Pod's files, then build and maintain its network:
                                       run prepare, and supervise podnet
  c9s-sidecar prepare                  write the Pod's files as listed in its manifest
  c9s-sidecar forget [--volumes] [--undo] NODE...
                                       delete what nodes have saved when their next Pod starts
  c9s-sidecar podnet                   the child of wire, in its own network namespace
  c9s-sidecar exec run [--steps FILE]  run a node's commands in its container
  c9s-sidecar exec hold                hold the sidecar's network namespace from a device's container
  c9s-sidecar exec login NODE [-- COMMAND...]
                                       have the sidecar log in to the node by SSH, then run a command
  c9s-sidecar exec qemu-img ARG...     run qemu-img for the launcher of a virtual machine, with the
                                       disk in a folder that stays
  c9s-sidecar exec as [--user USER[:GROUP]] [--dir DIR] [--env NAME=VALUE]... [--detach] COMMAND...
                                       run a command in a device's container
  c9s-sidecar exec pack --name NAME [--follow] PATH
  c9s-sidecar exec unpack [--inside | --whole] [--owners] PATH
                                       copy files of a device's container as tar streams
  c9s-sidecar interfaces [--watch] [--interval DURATION]
                                       print the interfaces of the node as JSON lines
  c9s-sidecar dial                     open connections to the node's addresses, as a stream on
                                       standard input and output requests
  c9s-sidecar capture                  copy frames of the node's links, as a line on standard input
                                       requests, to standard output
  c9s-sidecar measure                  exchange frames, ping, trace and look up names, as a request on
                                       standard input says
  c9s-sidecar status                   print the state of the Pod's network as JSON
  c9s-sidecar bridge NODE OBJECT       print fdb, link, vlan or mdb of a bridge node
  c9s-sidecar probe [--leave FILE]     test the features of the kernel and print them as JSON
  c9s-sidecar probe serve PORT         accept TCP connections, for the one that reaches
  c9s-sidecar probe reach [--leave FILE] OPEN CLOSED
                                       connect to two addresses, and print which answer
  c9s-sidecar idle                     hold the namespace in a Pod without a device
`

// The first thread stays with main, so that no goroutine takes it to another network
// namespace: /proc/<pid>/ns/net is that thread's.
func init() { runtime.LockOSThread() }

func main() {
	args := os.Args[1:]
	switch filepath.Base(os.Args[0]) { // the copy in a device
	case contract.HelperFile:
		args = append([]string{"exec"}, args...)
	case contract.DiskProgram:
		args = append([]string{"exec", "qemu-img"}, args...)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, args)
	var exit *inside.ExitError
	switch {
	case err == nil:
	case errors.As(err, &exit):
		fmt.Fprintln(os.Stderr, exit)
		os.Exit(exit.Code)
	case errors.Is(err, errUsage), errors.Is(err, inside.ErrUsage):
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	default:
		fmt.Fprintln(os.Stderr, "c9s-sidecar:", err)
		os.Exit(1)
	}
}

var errUsage = errors.New("usage")

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errUsage
	}
	switch command, args := args[0], args[1:]; command {
	case "prepare":
		if len(args) > 0 {
			return errUsage
		}
		if err := prepare.Confine(); err != nil {
			return err
		}
		return prepare.Run(prepare.Paths{})
	case "forget":
		return runForget(args)
	case "exec":
		return runExec(ctx, args)
	case "wire":
		return runWire(ctx)
	case "podnet":
		return runPodnet(ctx, args)
	case "dial":
		if len(args) > 0 {
			return errUsage
		}
		return dial.Run(ctx, podnet.StateFolder(contract.StateDir))
	case "capture":
		if len(args) > 0 {
			return errUsage
		}
		return capture.Run(ctx, podnet.StateFolder(contract.StateDir))
	case "measure":
		if len(args) > 0 {
			return errUsage
		}
		return measure.Run(ctx, podnet.StateFolder(contract.StateDir), filepath.Join(contract.LinksDir, contract.LinksFile), os.Stdin, os.Stdout)
	case "status":
		s, err := podnet.Status(ctx)
		if err != nil {
			return err
		}
		enc := json.NewEncoder(os.Stdout)
		enc.SetIndent("", "  ")
		return enc.Encode(s)
	case "interfaces":
		return runInterfaces(ctx, args)
	case "bridge":
		text, err := podnet.Bridge(ctx, args)
		if err == nil {
			_, err = fmt.Print(text)
		}
		return err
	case "probe":
		return runProbe(ctx, args)
	case "idle":
		return runHold(ctx, args)
	default:
		return errUsage
	}
}

// runWire is the first process of the sidecar's container.
func runWire(ctx context.Context) error {
	config, err := podnet.FromEnv()
	if err != nil {
		return err
	}
	err = hold.Supervise(ctx, hold.Options{
		PodIPs: config.PodIPs, StateDir: contract.StateDir, Dir: podnet.StateFolder(contract.StateDir),
		LayOut:  layOut,
		Near:    contract.NearDir,
		Command: []string{"/proc/self/exe", "podnet"},
	})
	switch {
	case errors.Is(err, hold.ErrLost):
		err = errors.Join(err, hold.GiveUp(contract.StateDir))
	case errors.Is(err, hold.ErrLayOut):
		hold.LastWords(contract.FilesMessage + ": " + strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	return err
}

// layOut lays out the Pod's files in a process of its own, which gives up this one's
// privileges first.
func layOut() error {
	cmd := exec.Command("/proc/self/exe", "prepare")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.CombinedOutput()
	if text := strings.TrimSpace(string(out)); err != nil && text != "" {
		return errors.New(strings.TrimPrefix(text, "c9s-sidecar: "))
	}
	return err
}

func runForget(args []string) error {
	flags := flag.NewFlagSet("forget", flag.ContinueOnError)
	volumes := flags.Bool("volumes", false, "also the named volumes of the Pod")
	undo := flags.Bool("undo", false, "keep it after all")
	if err := flags.Parse(args); err != nil || flags.NArg() == 0 {
		return errUsage
	}
	if err := prepare.Confine(); err != nil {
		return err
	}
	return prepare.Forget(prepare.Paths{}, flags.Args(), *volumes, *undo)
}

func runPodnet(ctx context.Context, args []string) error {
	config, err := podnet.FromEnv()
	if err != nil {
		return err
	}
	if config.Device, err = hold.Device(); err != nil {
		return err
	}
	if slices.Contains(args, hold.NearFlag) {
		config.Near = hold.Near()
	}
	config.Version = Version
	return podnet.Run(ctx, config)
}

func runExec(ctx context.Context, args []string) error {
	switch {
	case len(args) > 0 && args[0] == "hold":
		return runHold(ctx, args[1:])
	case len(args) > 0 && args[0] == contract.DiskProgram:
		return runDisk(args[1:])
	}
	if len(args) == 0 {
		return errUsage
	}
	switch args[0] {
	case "run":
	case "login":
		return runLogin(ctx, args[1:])
	case "as":
		return inside.As(args[1:])
	case "pack":
		return inside.Pack(args[1:], os.Stdout, os.Stderr)
	case "unpack":
		return inside.Unpack(args[1:], os.Stdin, os.Stdout)
	default:
		return errUsage
	}
	var o execute.Options
	flags := flag.NewFlagSet("exec run", flag.ContinueOnError)
	flags.StringVar(&o.Steps, "steps", filepath.Join(contract.HelperDir, contract.ProgramFile), "the program")
	flags.BoolVar(&o.Foreground, "foreground", false, "run it in the foreground")
	if err := flags.Parse(args[1:]); err != nil {
		return errUsage
	}
	return execute.Main(ctx, o)
}

// runLogin is a readiness probe: the sidecar logs in, and then the test of the kind runs in place
// of this process.
func runLogin(ctx context.Context, args []string) error {
	if len(args) != 1 && (len(args) < 3 || args[1] != "--") {
		return errUsage
	}
	if err := api.Login(ctx, filepath.Join(contract.HelperDir, contract.SocketFile), args[0]); err != nil {
		return err
	}
	if len(args) == 1 {
		return nil
	}
	program, err := exec.LookPath(args[2])
	if err != nil {
		return err
	}
	return syscall.Exec(program, args[2:], os.Environ())
}

// runDisk is qemu-img for a launcher whose disk is kept.
func runDisk(args []string) error {
	d := machine.Disks{Dir: contract.DisksDir, Run: machine.Original(path.Join(contract.HelperDir, contract.DiskBin)), Log: os.Stderr}
	err := d.QemuImg(args)
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		os.Exit(exit.ExitCode())
	}
	return err
}

// runInterfaces prints the interfaces of the device's network namespace, in which every process
// of the sidecar's container begins.
func runInterfaces(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("interfaces", flag.ContinueOnError)
	watch := flags.Bool("watch", false, "go on, and print every change")
	interval := flags.Duration("interval", 0, "with --watch, also print the counters this often")
	if err := flags.Parse(args); err != nil || flags.NArg() > 0 {
		return errUsage
	}
	known, err := podnet.Status(ctx)
	if err != nil { // it still starts; the kernel knows its interfaces
		known.Interfaces = nil
	}
	if !*watch {
		return ifaces.Print(os.Stdout, known)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // standard input ends with the stream to the user
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	changes := make(chan ifaces.Impairments)
	go podnet.FollowStatus(ctx, known.Tag(), func(s api.Status) {
		select {
		case changes <- s.Impairments():
		case <-ctx.Done():
		}
	})
	return ifaces.Watch(ctx, os.Stdout, *interval, known.Impairments(), changes)
}

// runHold is what remains of the helper in a device's container.
func runHold(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("exec hold", flag.ContinueOnError)
	socket := flags.String("socket", filepath.Join(contract.HelperDir, contract.HoldSocket), "socket over which the sidecar hands over its network namespace")
	if err := flags.Parse(args); err != nil || flags.NArg() > 0 {
		return errUsage
	}
	hold.Keep(ctx, *socket)
	return nil
}

func runProbe(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("probe", flag.ContinueOnError)
	file := flags.String("leave", "", "also write it to this file (a termination message)")
	verb := ""
	if len(args) > 0 && (args[0] == "serve" || args[0] == "reach") {
		verb, args = args[0], args[1:]
	}
	if err := flags.Parse(args); err != nil {
		return errUsage
	}
	switch {
	case verb == "serve" && flags.NArg() == 1:
		port, err := strconv.Atoi(flags.Arg(0))
		if err != nil {
			return errUsage
		}
		return probe.Serve(ctx, port)
	case verb == "reach" && flags.NArg() == 2:
		return probe.Reach(ctx, flags.Arg(0), flags.Arg(1)).Write(os.Stdout, *file)
	case verb == "" && flags.NArg() == 0:
		return probe.Run(ctx).Write(os.Stdout, *file)
	}
	return errUsage
}
