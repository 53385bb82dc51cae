package save

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/c9s-lab/c9s/pkg/plan/kinds"
)

func init() { quiet = 30 * time.Millisecond }

// TestKindsOverSSH saves stand-ins by the rules of the catalogue, as their devices print.
func TestKindsOverSSH(t *testing.T) {
	const ios = "hostname R1\n!\ninterface Ethernet0/1\n description to R2#\n ip address 10.0.0.1 255.255.255.0\n!\nend\n"
	const xr = "hostname R1\ninterface MgmtEth0/RP0/CPU0/0\n!\nend\n\n"
	const junos = "version 24.2R1;\nsystem {\n    host-name R1;\n}\n\n"
	for _, tt := range []struct {
		kind   string
		device *standIn
		typed  []string
		want   string
		ports  []uint16
	}{
		{"cisco_iol", &standIn{prompt: "R1#", echo: true, outputs: map[string]string{
			"terminal length 0": "", "write memory": "Building configuration...\n[OK]\n",
			"show running-config": "Building configuration...\n\nCurrent configuration : 120 bytes\n" + ios,
		}}, []string{"terminal length 0", "write memory", "show running-config"}, "\n" + ios, []uint16{22}},
		{"arista_veos", &standIn{prompt: "R1>", echo: true, prompts: map[string]string{"enable": "R1#"}, outputs: map[string]string{
			"enable": "", "terminal length 0": "Pagination disabled.\n", "write memory": "Copy completed successfully.\n",
			"show running-config": "! Command: show running-config\n! device: R1 (vEOS, EOS-4.33.1F)\n!\n" + ios,
		}}, nil, "!\n" + ios, []uint16{22}},
		{"cisco_xrv9k", &standIn{prompt: "RP/0/RP0/CPU0:R1#", echo: true, banner: "This device is for labs only #\r\nenter", outputs: map[string]string{
			"terminal length 0": "Tue Dec  1 20:00:00.123 UTC\n", "terminal width 0": "Tue Dec  1 20:00:00.223 UTC\n",
			"show running-config": "Tue Dec  1 20:00:01.123 UTC\nBuilding configuration...\n!! IOS XR Configuration 24.1.1\n!! Last configuration change at Tue Dec  1 19:00:00 2026 by clab\n!\n" + xr,
		}}, nil, "!\n" + xr, []uint16{22}},
		{"cisco_xrd", &standIn{prompt: "RP/0/RP0/CPU0:R1#", outputs: map[string]string{
			"terminal length 0": "", "terminal width 0": "", "show running-config": xr,
		}, netconf: func(string) string { return "<ok/>" }}, nil, xr, []uint16{830, 22}},
		{"cisco_n9kv", &standIn{prompt: "R1# ", echo: true, outputs: map[string]string{
			"terminal length 0": "", "copy running-config startup-config": "[########################################] 100%\nCopy complete.\n",
			"show running-config": "\n!Command: show running-config\n!Running configuration last done at: Tue Dec  1 20:00:00 2026\n!Time: Tue Dec  1 20:00:01 2026\n\n" + ios,
		}}, nil, "\n\n" + ios, []uint16{22}},
		{"juniper_vjunosrouter", &standIn{prompt: "admin@R1> ", echo: true, outputs: map[string]string{
			"set cli screen-length 0": "Screen length set to 0\n", "set cli screen-width 0": "Screen width set to 0\n",
			"show configuration": "## Last commit: 2026-12-01 20:00:00 UTC by admin\n" + junos,
		}}, nil, junos, []uint16{22}},
		{"mikrotik_ros", &standIn{outputs: map[string]string{
			"/export": "# 2026-12-01 20:00:00 by RouterOS 7.16\r\n/interface bridge\r\nadd name=lo0\r\n/ip address\r\nadd address=172.31.255.30/30 interface=ether1 network=172.31.255.28\r\nadd address=10.0.0.1/24 interface=ether10\r\n",
		}}, nil, "/interface bridge\nadd name=lo0\n/ip address\nadd address=10.0.0.1/24 interface=ether10\n", []uint16{22}},
		{"huawei_vrp", &standIn{prompt: "<R1>", echo: true, outputs: map[string]string{
			"screen-length 0 temporary": "", "display current-configuration": "!Software Version V800R021\nsysname R1\n#\nreturn\n",
		}}, nil, "sysname R1\n#\nreturn\n", []uint16{22}},
		{"aruba_aoscx", &standIn{prompt: "R1# ", echo: true, outputs: map[string]string{
			"no page": "", "write memory": "Copying configuration: [Success]\n", "show running-config": "Current configuration:\n!\n!Version ArubaOS-CX Virtual.10.13\nhostname R1\n",
		}}, nil, "!\nhostname R1\n", []uint16{22}},
	} {
		t.Run(tt.kind, func(t *testing.T) {
			kind, _ := kinds.Builtin().Lookup(tt.kind)
			s := tt.device
			s.t = t
			got, err := Config(t.Context(), kind, s.device())
			if err != nil || string(got) != tt.want {
				t.Errorf("%q, %v; want %q", got, err, tt.want)
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			if tt.typed != nil && !slices.Equal(s.typed, tt.typed) {
				t.Errorf("typed %q", s.typed)
			}
			if !slices.Equal(s.ports, tt.ports) {
				t.Errorf("dialled %v", s.ports)
			}
		})
	}
}

// TestKindsOverNETCONF: SR OS copies its configuration to where the container has it.
func TestKindsOverNETCONF(t *testing.T) {
	for name, file := range map[string]string{"nokia_sros": "/tftpboot/config.txt", "nokia_srsim": "/home/sros/flash3/config.cfg"} {
		for _, old := range []bool{false, true} {
			kind, _ := kinds.Builtin().Lookup(name)
			var requests []string
			s := &standIn{t: t, old: old, netconf: func(r string) string { requests = append(requests, r); return "<ok/>" }}
			d := s.device()
			d.Exec = func(_ context.Context, argv []string, _ io.Reader, out, _ io.Writer) (int, error) {
				s.mu.Lock()
				defer s.mu.Unlock()
				if !slices.Equal(argv, []string{"cat", file}) || len(requests) == 0 {
					t.Errorf("%s: %q after %d requests", name, argv, len(requests))
				}
				io.WriteString(out, "configure {\n}\n")
				return 0, nil
			}
			got, err := Config(t.Context(), kind, d)
			s.mu.Lock()
			if err != nil || string(got) != "configure {\n}\n" || !slices.Equal(s.ports, []uint16{830}) {
				t.Errorf("%s: %q, %v, ports %v", name, got, err, s.ports)
			}
			if want := "<copy-config><target><startup/></target><source><running/></source></copy-config>"; len(requests) == 0 || !strings.Contains(requests[0], want) {
				t.Errorf("%s: asked %q", name, requests)
			}
			s.mu.Unlock()
		}
	}
}

// TestNETCONFGets: a kind of a user may take the XML itself.
func TestNETCONFGets(t *testing.T) {
	kind := &kinds.Kind{Save: &kinds.Save{NETCONF: &kinds.SaveNETCONF{Get: "running", Port: 1830}}}
	s := &standIn{t: t, netconf: func(r string) string {
		if strings.Contains(r, "<get-config><source><running/></source></get-config>") {
			return `<data><native xmlns="http://example.net/x">` + strings.Repeat("x", 100_000) + `</native></data>`
		}
		return "<ok/>"
	}}
	got, err := Config(t.Context(), kind, s.device())
	if want := `<native xmlns="http://example.net/x">` + strings.Repeat("x", 100_000) + "</native>"; err != nil || string(got) != want || s.ports[0] != 1830 {
		t.Errorf("%d bytes, %v, ports %v", len(got), err, s.ports)
	}
}

func TestDeviceFails(t *testing.T) {
	shell := func(lines ...string) *kinds.Save { return &kinds.Save{SSH: &kinds.SaveSSH{Lines: lines, Fails: "^% "}} }
	for _, tt := range []struct {
		name   string
		rule   *kinds.Save
		device *standIn
		edit   func(*Device)
		want   string
	}{
		{"another password", shell("show"), &standIn{prompt: "R1#"}, func(d *Device) { d.Login.Password = "other" }, "the device rejects the password of user admin"},
		{"no connection", shell("show"), &standIn{}, func(d *Device) {
			d.Dial = func(context.Context, uint16) (net.Conn, error) { return nil, errors.New("connection refused") }
		}, "port 22: connection refused"},
		{"no way", shell("show"), &standIn{}, func(d *Device) { d.Dial = nil }, "there is no way to the device"},
		{"a line that fails", shell("wr", "show"), &standIn{prompt: "R1#", outputs: map[string]string{"show": "x\n"}}, nil, `"wr": the device reports: % Invalid input`},
		{"the last line fails", shell("show"), &standIn{prompt: "R1#"}, nil, "the device reports: % Invalid input"},
		{"the device hangs up", shell("show"), &standIn{prompt: "R1#", hangUp: "show"}, nil, `"show": the device ends the session: EOF`},
		{"a command fails", &kinds.Save{SSH: &kinds.SaveSSH{Lines: []string{"/export"}, Exec: true}}, &standIn{}, nil, `"/export": Process exited with status 1`},
		{"no NETCONF", &kinds.Save{NETCONF: &kinds.SaveNETCONF{Get: "running"}}, &standIn{}, nil, "the device does not speak NETCONF at this port"},
		{"an error of NETCONF", &kinds.Save{NETCONF: &kinds.SaveNETCONF{Copy: "startup"}}, &standIn{netconf: func(string) string {
			return "<rpc-error><error-severity>error</error-severity><error-tag>access-denied</error-tag><error-message>not\n you</error-message></rpc-error>"
		}}, nil, "NETCONF: copy-config: the device reports access-denied: not you"},
		{"a warning of NETCONF", &kinds.Save{NETCONF: &kinds.SaveNETCONF{Get: "running"}}, &standIn{netconf: func(string) string {
			return "<rpc-error><error-severity>warning</error-severity><error-tag>x</error-tag></rpc-error><data>x</data>"
		}}, nil, "<nil>"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := tt.device
			s.t = t
			d := s.device()
			if tt.edit != nil {
				tt.edit(&d)
			}
			_, err := Config(t.Context(), &kinds.Kind{Save: tt.rule}, d)
			if got := errorText(err); got != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
		})
	}
}

func errorText(err error) string {
	if err == nil {
		return "<nil>"
	}
	return err.Error()
}

// TestNoPrompt: a device that never prompts ends with the time limit.
func TestNoPrompt(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	s := &standIn{t: t, prompt: "booting"}
	_, err := Config(ctx, &kinds.Kind{Save: &kinds.Save{SSH: &kinds.SaveSSH{Lines: []string{"show"}}}}, s.device())
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
}

func TestPlainText(t *testing.T) {
	for raw, want := range map[string]string{
		"a\r\nb\r\n":                      "a\nb\n",
		"\x1b[?7h\x1b[32mR1\x1b[0m# ":     "R1# ",
		"--More--\r        \rhostname R1": "hostname R1",
		"abX\bc":                          "abc",
		"\x1b(B\x1b=x\x00\x07":            "x",
	} {
		if got := plainText([]byte(raw)); got != want {
			t.Errorf("%q: %q, want %q", raw, got, want)
		}
	}
}

// TestEveryKindThatContainerlabSaves: containerlab has a way to save each of these.
func TestEveryKindThatContainerlabSaves(t *testing.T) {
	for _, name := range []string{
		"nokia_srlinux", "arista_ceos", "juniper_crpd", "juniper_csrx", "frr", "6wind_vsr", "vyosnetworks_vyos", "cisco_iol", "cisco_xrd", "cisco_c8000",
		"nokia_sros", "nokia_srsim", "mikrotik_ros", "sonic-vm", "dell_sonic", "plvision_sonic", "freebsd", "openbsd",
		"arista_veos", "cisco_c8000v", "cisco_cat9kv", "cisco_csr1000v", "cisco_vios", "cisco_n9kv", "cisco_xrv", "cisco_xrv9k", "cisco_xrd_vrouter",
		"juniper_cjunosevolved", "juniper_vjunosevolved", "juniper_vjunosrouter", "juniper_vmx", "juniper_vqfx", "juniper_vsrx",
	} {
		kind, ok := kinds.Builtin().Lookup(name)
		if !ok || kind.Save == nil || kind.Save.Extension == "" {
			t.Errorf("kind %s has no rule", name)
		}
	}
}
