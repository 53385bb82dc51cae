#!/usr/bin/env python3
"""Runs a small Linux in QEMU, the way in which the images of vrnetlab run routers.

It keeps to what such images expect of their container and what others expect of them:

- it waits until there are CLAB_INTFS interfaces eth1, eth2, ... beside eth0, however late they are;
- each of them is joined to a tap by tc, which is the machine's interface;
- management is QEMU's user network with ports of the container passed on, or with
  CLAB_MGMT_PASSTHROUGH a tap that is joined to eth0 and has its address;
- the serial console is a Telnet server at port 5000, the monitor at port 4000;
- the disk is an overlay beside the disk image, made by qemu-img;
- the machine is set up at its serial console, with the lines of /config/startup-config.cfg too;
- /health begins with 0 once the machine is up; /reset resets it;
- a machine that ends is started again.
"""

import argparse
import os
import pathlib
import socket
import subprocess
import sys
import time

IMAGE = "/smallvm-1.0.qcow2"
OVERLAY = "/smallvm-1.0-overlay.qcow2"
STARTUP_CONFIG = pathlib.Path("/config/startup-config.cfg")
NET = pathlib.Path("/sys/class/net")
GUEST = "10.0.0.15"
TCP_PORTS = [22, 80, 443, 830, 6030, 8080, 9339, 32767, 50051, 57400]
UDP_PORTS = [161]
PROMPT = b"vm# "


def log(text):
    print(time.strftime("%H:%M:%S"), "launch:", text, flush=True)


def run(*argv):
    return subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def health(code, text):
    pathlib.Path("/health").write_text(f"{code} {text}")


def redirect(source, target, *options):
    """Sends what comes in by source out of target. Some kernels have no flower, some no matchall."""
    for match in (["flower"], ["matchall"], ["u32", "match", "u32", "0", "0"]):
        done = run("tc", "filter", "add", "dev", source, "ingress", *options, *match, "action", "mirred", "egress", "redirect", "dev", target)
        if done.returncode == 0:
            return
    log(f"tc filter of {source}: {done.stdout.strip()}")


def ifup(tap):
    """Is what QEMU runs for a tap that it has opened."""
    run("ip", "link", "set", tap, "up")
    run("ip", "link", "set", tap, "mtu", "65000")
    device = "eth" + tap.removeprefix("tap")
    for name in (device, tap):
        run("tc", "qdisc", "add", "dev", name, "clsact")
    redirect(tap, device)
    if device != "eth0":
        redirect(device, tap)
        return
    # Consoles stay the container's, and ARP is for both.
    run("tc", "filter", "add", "dev", "eth0", "ingress", "prio", "1", "protocol", "ip", "u32", "match", "ip", "protocol", "6", "0xff",
        "match", "ip", "dport", "5000", "0xfff8", "action", "pass")
    run("tc", "filter", "add", "dev", "eth0", "ingress", "prio", "2", "protocol", "arp", "u32", "match", "u32", "0", "0",
        "action", "mirred", "egress", "mirror", "dev", tap)
    redirect("eth0", tap, "prio", "3")
    run("ip", "link", "set", "dev", "eth0", "address", pathlib.Path("/run/mgmt-mac").read_text())


class Console:
    """The serial console, for as long as the machine is set up: it takes one connection at a time."""

    def __init__(self):
        self.socket = socket.create_connection(("127.0.0.1", 5000))
        self.socket.settimeout(120)

    def wait(self, *texts):
        seen = b""
        while not any(t in seen for t in texts):
            more = self.socket.recv(4096)
            if not more:
                raise EOFError("the console was closed")
            seen += more
        sys.stdout.write(seen.decode("ascii", "replace"))
        sys.stdout.flush()
        return seen

    def type(self, line):
        self.socket.sendall(line.encode() + b"\r")

    def command(self, line):
        log(f"typing {line}")
        self.type(line)
        return self.wait(PROMPT)


class Machine:
    def __init__(self, args):
        self.args = args
        self.kvm = usable_kvm()
        self.passthrough = os.environ.get("CLAB_MGMT_PASSTHROUGH", "").lower() == "true"
        if args.connection_mode != "tc":
            sys.exit(f"connection mode {args.connection_mode} is not supported")
        if not os.path.exists(OVERLAY):
            done = run("qemu-img", "create", "-f", "qcow2", "-F", "qcow2", "-b", IMAGE, OVERLAY)
            log(done.stdout.strip())
            if done.returncode != 0:
                sys.exit("there is no disk")

    def wait_for_interfaces(self):
        want = int(os.environ.get("CLAB_INTFS", "0"))
        said = -1
        while (have := len(list(NET.glob("eth*"))) - 1) < want:
            if have != said:
                log(f"waiting for interfaces: {have} of {want}")
                said = have
            time.sleep(0.2)
        log(f"interfaces: {want} of {want}")
        return sorted(int(i.name[3:]) for i in NET.glob("eth*") if i.name != "eth0")

    def interfaces(self):
        numbers = self.wait_for_interfaces()
        mac = "0c:00:%02x:%02x:%02x:00" % tuple(os.urandom(3))
        pathlib.Path("/run/mgmt-mac").write_text(mac)
        nic = "virtio-net-pci,romfile=" + os.environ.get("SMALLVM_NIC", "")
        if self.passthrough:
            yield from ["-netdev", "tap,id=p00,ifname=tap0,script=/launch.py,downscript=no"]
        else:
            forwards = [f"hostfwd=tcp:0.0.0.0:{p}-{GUEST}:{p}" for p in TCP_PORTS] + [f"hostfwd=udp:0.0.0.0:{p}-{GUEST}:{p}" for p in UDP_PORTS]
            yield from ["-netdev", f"user,id=p00,net=10.0.0.0/24,host=10.0.0.2,dns=10.0.0.3,dhcpstart={GUEST},tftp=/tftpboot," + ",".join(forwards)]
        yield from ["-device", f"{nic},netdev=p00,mac={mac}"]
        for i in range(1, max(numbers, default=0) + 1):
            if i in numbers:
                yield from ["-netdev", f"tap,id=p{i:02},ifname=tap{i},script=/launch.py,downscript=no"]
            else:  # keeps the place of a number that is not used
                yield from ["-netdev", f"hubport,id=p{i:02},hubid={i}"]
            yield from ["-device", f"{nic},netdev=p{i:02},mac=0c:00:00:00:00:{i:02x}"]

    def start(self):
        accel = ["-accel", "kvm" if self.kvm else "tcg"]
        argv = ["qemu-system-x86_64", "-nodefaults", "-no-user-config", "-display", "none", "-machine", "pc", *accel, "-cpu", "max",
                "-monitor", "tcp:0.0.0.0:4000,server,nowait", "-serial", "telnet:0.0.0.0:5000,server,nowait",
                "-m", os.environ.get("QEMU_MEMORY", "128"), "-smp", os.environ.get("QEMU_SMP", "1"),
                "-kernel", "/guest/vmlinuz", "-initrd", "/guest/initrd",
                "-append", "console=ttyS0 quiet panic=1 mitigations=off random.trust_cpu=on cryptomgr.notests no_timer_check tsc=reliable raid=noautodetect",
                "-drive", f"if=none,id=disk,file={OVERLAY}", "-device", "virtio-blk-pci,drive=disk", *self.interfaces()]
        log(" ".join(argv) if self.args.trace else f"starting QEMU with {accel[1]}")
        self.process = subprocess.Popen(argv, stdin=subprocess.DEVNULL)

    def set_up(self):
        for _ in range(300):
            try:
                console = Console()
                break
            except OSError:
                if self.process.poll() is not None:
                    raise EOFError("QEMU ended")
                time.sleep(0.1)
        else:
            raise EOFError("there is no console")
        began = time.monotonic()
        console.type("")
        console.wait(b"login: ")
        log("the machine booted in %.1f s" % (time.monotonic() - began))
        console.type("setup")
        console.wait(PROMPT)
        console.command(f"conf hostname {self.args.hostname}")
        console.command(f"conf account {self.args.username} {self.args.password}")
        address, gateway = f"{GUEST}/24", "10.0.0.2"
        if self.passthrough:
            address = run("ip", "-4", "-o", "address", "show", "dev", "eth0", "scope", "global").stdout.split()[3]
            gateway = run("ip", "-4", "route", "show", "default").stdout.split()[2]
        console.command(f"conf ip address add {address} dev eth0")
        console.command(f"conf ip route add default via {gateway}")
        if STARTUP_CONFIG.exists():
            for line in STARTUP_CONFIG.read_text().splitlines():
                if line.strip() and not line.startswith("#"):
                    console.command("conf " + line)
        console.command("save")
        console.type("exit")
        console.wait(b"login: ")
        console.socket.close()

    def reset(self):
        with socket.create_connection(("127.0.0.1", 4000)) as monitor:
            monitor.settimeout(10)
            monitor.recv(4096)
            monitor.sendall(b"system_reset\n")
            monitor.recv(4096)


def usable_kvm():
    """Reports whether KVM runs machines: there may be a device without a processor that can."""
    flags = set(pathlib.Path("/proc/cpuinfo").read_text().split())
    return os.access("/dev/kvm", os.R_OK | os.W_OK) and bool(flags & {"vmx", "svm"})


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--username", default="admin")
    parser.add_argument("--password", default="admin")
    parser.add_argument("--hostname", default="smallvm")
    parser.add_argument("--connection-mode", default="tc")
    parser.add_argument("--trace", action="store_true", default=os.environ.get("TRACE", "").lower() == "true")
    machine = Machine(parser.parse_args())
    os.makedirs("/tftpboot", exist_ok=True)
    health(1, "starting")
    while True:
        machine.start()
        try:
            machine.set_up()
            health(0, "running")
            while machine.process.poll() is None:
                if os.path.exists("/reset"):
                    os.remove("/reset")
                    machine.reset()
                time.sleep(0.5)
        except (EOFError, OSError) as e:
            log(f"{e}")
            machine.kvm = False  # it may be what failed
        machine.process.kill()
        machine.process.wait()
        health(1, "VM failed - restarting")


if len(sys.argv) == 2 and sys.argv[1].startswith("tap"):
    ifup(sys.argv[1])
else:
    main()
