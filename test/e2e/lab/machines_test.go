package lab

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/c9s-lab/c9s/test/cluster/testcluster"
)

const machineImage = "c9s.test/vm:latest"

// machinesLab has two virtual machines and a router. The first has its management behind the
// container's, no claim and the offloads of virtio; the second has the address of eth0 itself,
// its disk on a claim and a plain card. The interfaces of the second come after its launcher.
func machinesLab(t *testing.T) *lab {
	t.Helper()
	l := written(t, "machines", map[string]string{
		"lab.clab.yml": `name: machines
topology:
  nodes:
    vm1:
      kind: arista_veos
      image: ` + machineImage + `
      startup-config: vm1.cfg
      env: {QEMU_MEMORY: "128"}
    vm2:
      kind: juniper_vsrx
      image: ` + machineImage + `
      startup-config: vm2.cfg
      env: {QEMU_MEMORY: "128", CLAB_MGMT_PASSTHROUGH: "true", SMALLVM_NIC: ",csum=off,gso=off,guest_csum=off,guest_tso4=off,guest_tso6=off,guest_ecn=off,guest_ufo=off"}
      stages:
        create-links:
          wait-for: [{node: f1, stage: configure}]
    f1:
      kind: linux
      image: quay.io/frrouting/frr:10.2.1
      stages:
        create:
          wait-for: [{node: vm2, stage: create}]
      exec:
      - ip address add 10.2.1.254/24 dev eth1
      - ip address add 10.2.2.254/24 dev eth2
      - ip link set eth1 mtu 1500
      - ip link set eth2 mtu 9000
  links:
    - endpoints: ["vm1:Ethernet1/1", "vm2:ge-0/0/0"]
    - endpoints: ["vm1:eth2", "f1:eth1"]
    - endpoints: ["vm2:eth2", "f1:eth2"]
`,
		"vm1.cfg": `# of {{ .ShortName }}
ip link set eth1 mtu 9000
ip address add 10.1.0.1/24 dev eth1
ip address add 10.2.1.1/24 dev eth2
`,
		"vm2.cfg": `ip link set eth1 mtu 9000
ip link set eth2 mtu 9000
ip address add 10.1.0.2/24 dev eth1
ip address add 10.2.2.2/24 dev eth2
`,
		"c9s.yaml": `apiVersion: c9s.dev/v1
kind: Policy
profiles:
  - name: keep
    match: {names: [vm2]}
    set: {persistence: {enabled: true, size: 256Mi}}
  - name: machines
    match: {names: [vm1, vm2]}
    set: {kvm: optional}
`,
	})
	l.volume(t, "vm2-data", l.Workers[0])
	t.Cleanup(func() {
		if t.Failed() {
			for _, name := range []string{"vm1", "vm2"} {
				out, _ := l.try(context.Background(), "logs", name, "-n", l.ns, "--tail", "60")
				t.Logf("log of %s:\n%s", name, out)
			}
		}
	})
	return l
}

// TestVirtualMachines runs virtual machines as vrnetlab packs them.
func TestVirtualMachines(t *testing.T) {
	l := machinesLab(t)
	l.allWorkers(t)
	began := time.Now()
	l.deploy(t)
	t.Logf("ready after %s", time.Since(began).Round(100*time.Millisecond))
	log := l.c9s(t, "logs", "vm2", "-n", l.ns)
	if first, last := strings.Index(log, "waiting for interfaces: 0 of 2"), strings.Index(log, "interfaces: 2 of 2"); first < 0 || last < first {
		t.Errorf("the launcher of vm2 did not wait for its interfaces:\n%s", log)
	}
	if !strings.Contains(log, "--trace") && !strings.Contains(log, "qemu-system-x86_64") {
		t.Errorf("no trace in the log of vm2:\n%s", log)
	}
	for _, name := range []string{"vm1", "vm2"} {
		if got := l.guest(t, name, "hostname"); got != name {
			t.Errorf("%s calls itself %q", name, got)
		}
	}
	l.machinesTalk(t)
	l.largeTransfers(t)
	t.Run("access", l.accessMachines)
	t.Run("reboot", l.rebootMachine)
	t.Run("restart", l.restartLaunchers)
	t.Run("move", l.moveMachines)
	t.Logf("all of it took %s", time.Since(began).Round(100*time.Millisecond))
}

// inGuest runs a command in a virtual machine over ssh, with the kind's password. It gives up on
// a machine that boots meanwhile: QEMU keeps the connection.
func (l *lab) inGuest(ctx context.Context, name, command string) (string, error) {
	out, err := l.try(ctx, "ssh", "-n", l.ns, "--password", "-o", "ConnectTimeout=5", "-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=2", name, command)
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return strings.TrimSpace(out), nil
}

// guest waits until a command in a virtual machine succeeds.
func (l *lab) guest(t *testing.T, name, command string) (out string) {
	t.Helper()
	testcluster.Eventually(t, patience, fmt.Sprintf("%q in the machine %s", command, name), func() (err error) {
		out, err = l.inGuest(t.Context(), name, command)
		return err
	})
	return out
}

// boots is how often the machine has booted from its disk.
func (l *lab) boots(t *testing.T, name string) string {
	t.Helper()
	return l.guest(t, name, "cat /disk/boots")
}

// booted waits until the machine has booted for the nth time from its disk, and is ready.
func (l *lab) booted(t *testing.T, name, nth string) {
	t.Helper()
	testcluster.Eventually(t, patience, fmt.Sprintf("boot %s of %s", nth, name), func() error {
		out, err := l.inGuest(t.Context(), name, "cat /disk/boots")
		if err == nil && out != nth {
			err = fmt.Errorf("it is boot %s", out)
		}
		return err
	})
}

// machinesTalk pings along every link, with frames as large as its MTU.
func (l *lab) machinesTalk(t *testing.T) {
	t.Helper()
	for _, to := range []struct{ address, size string }{{"10.2.1.1", "1472"}, {"10.2.2.2", "8972"}} {
		l.eventually(t, "f1", " 0% packet loss", "ping", "-c", "1", "-W", "2", "-M", "do", "-s", to.size, to.address)
	}
	l.guest(t, "vm1", "ping -c 1 -W 2 -s 8972 10.1.0.2")
}

// largeTransfers moves data in both directions, in segments that cards with offloads make large
// and cards without cannot take so.
func (l *lab) largeTransfers(t *testing.T) {
	t.Helper()
	for name, address := range map[string]string{"vm1": "10.2.1.1", "vm2": "10.2.2.2"} {
		want, _, _ := strings.Cut(l.guest(t, name, "sha256sum /www/data"), " ")
		l.eventually(t, "f1", want, "sh", "-c", "timeout 20 busybox wget -q -O - http://"+address+"/data | sha256sum")
		other, from := "vm1", "10.1.0.2"
		if name == "vm1" {
			other, from = "vm2", "10.1.0.1"
		}
		got := l.guest(t, other, "timeout 20 wget -q -O - http://"+from+"/data | sha256sum")
		if !strings.HasPrefix(got, want) {
			t.Errorf("%s got %s of %s, want %s", other, got, name, want)
		}
	}
}

// accessMachines reaches the management addresses from another node and from outside, and the
// serial console.
func (l *lab) accessMachines(t *testing.T) {
	for name, login := range map[string][2]string{"vm1": {"admin", "admin"}, "vm2": {"admin", "admin@123"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const ssh = `printf '#!/bin/sh\necho %[1]s\n' >/tmp/ask-%[3]s; chmod 755 /tmp/ask-%[3]s
SSH_ASKPASS=/tmp/ask-%[3]s SSH_ASKPASS_REQUIRE=force ssh -o ConnectTimeout=10 -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR %[2]s@%[3]s hostname`
			l.eventually(t, "f1", name, "sh", "-c", fmt.Sprintf(ssh, login[1], login[0], name))
			address := l.forward(t, name+":80")
			client := &http.Client{Timeout: 10 * time.Second} // an emulated machine may lose a connection
			testcluster.Eventually(t, patience, "the web server of "+name, func() error {
				response, err := client.Get("http://" + address + "/")
				if err != nil {
					return err
				}
				defer response.Body.Close()
				text, err := io.ReadAll(response.Body)
				if err == nil && string(text) != "hello from a virtual machine\n" {
					err = fmt.Errorf("it says %q", text)
				}
				return err
			})
			l.onConsole(t, name)
		})
	}
}

// onConsole logs in at the serial console.
func (l *lab) onConsole(t *testing.T, name string) {
	t.Helper()
	cmd := l.command(t.Context(), "console", name, "-n", l.ns)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out := &syncBuffer{}
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	for _, step := range [][2]string{{"\r", name + " login: "}, {"setup\r", "vm# "}, {"echo $((6*7)) of $(hostname)\r", "42 of " + name}, {"exit\r", name + " login: "}} {
		from := len(out.String())
		if _, err := io.WriteString(in, step[0]); err != nil {
			t.Fatal(err)
		}
		testcluster.Eventually(t, patience, fmt.Sprintf("%q at the console of %s", step[1], name), func() error {
			if text := out.String()[from:]; !strings.Contains(text, step[1]) {
				return fmt.Errorf("it prints %q", text)
			}
			return nil
		})
	}
}

// rebootMachine reboots a machine from within: its container goes on, and what it saved is there.
func (l *lab) rebootMachine(t *testing.T) {
	pod := l.pod(t, "vm1")
	if boots := l.boots(t, "vm1"); boots != "1" {
		t.Errorf("boot %s of a new disk", boots)
	}
	// The session must end before: nobody would close its connection.
	l.guest(t, "vm1", "(sleep 1; sync; reboot -f) </dev/null >/dev/null 2>&1 &")
	l.booted(t, "vm1", "2")
	l.machinesTalk(t)
	now := l.pod(t, "vm1")
	if now.UID != pod.UID || now.Status.ContainerStatuses[0].RestartCount != 0 {
		t.Errorf("the Pod is %s, with %d restarts of the container", now.Name, now.Status.ContainerStatuses[0].RestartCount)
	}
}

// restartLaunchers ends the containers of both machines. One boots a new disk, the other the
// disk that it had.
func (l *lab) restartLaunchers(t *testing.T) {
	key := l.guest(t, "vm2", "md5sum /disk/dropbear/*")
	for _, name := range []string{"vm1", "vm2"} {
		kill(t, l, name, name)
	}
	l.booted(t, "vm1", "1")
	l.booted(t, "vm2", "2")
	l.ready(t)
	l.machinesTalk(t)
	if got := l.guest(t, "vm2", "md5sum /disk/dropbear/*"); got != key {
		t.Errorf("vm2 has other keys: %s, before %s", got, key)
	}
}

// moveMachines moves the Pod of one machine to another worker, and replaces that of the other.
func (l *lab) moveMachines(t *testing.T) {
	old, other := l.pod(t, "vm1"), l.pod(t, "vm2")
	replace := func(pod *corev1.Pod) {
		t.Helper()
		if err := l.Typed.CoreV1().Pods(l.ns).Delete(t.Context(), pod.Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		l.replaced(t, pod)
	}
	func() {
		setUnschedulable(t, l, old.Spec.NodeName, true)
		defer setUnschedulable(t, l, old.Spec.NodeName, false)
		replace(old)
		testcluster.Eventually(t, patience, "another worker for vm1", func() error {
			pod, err := l.tryPod(t, "vm1")
			if err == nil && (pod.Spec.NodeName == "" || pod.Spec.NodeName == old.Spec.NodeName) {
				err = fmt.Errorf("it is on %q", pod.Spec.NodeName)
			}
			return err
		})
	}()
	replace(other)
	l.booted(t, "vm1", "1")
	l.booted(t, "vm2", "3")
	l.ready(t)
	l.machinesTalk(t)
	saved := l.guest(t, "vm2", "cat /disk/config")
	for _, line := range []string{"hostname vm2", "ip address add 10.2.2.2/24 dev eth2"} {
		if !strings.Contains(saved, line) {
			t.Errorf("the saved configuration of vm2 lacks %q:\n%s", line, saved)
		}
	}
}
