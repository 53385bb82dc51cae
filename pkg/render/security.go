package render

import (
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/c9s-lab/c9s/pkg/apicheck"
	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/pkg/plan"
)

// securityContext carries user, privileged, cap-add and security-opts. As in
// Docker, an unprivileged container has the runtime's default capabilities plus
// cap-add, and the default seccomp profile.
func (b *deploymentBuilder) securityContext(n *lab.Node, c plan.Container, privileged bool) *corev1.SecurityContext {
	out := &corev1.SecurityContext{}
	if privileged {
		out.Privileged = new(true)
	} else {
		out.SeccompProfile = &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}
		if caps := capabilities(c.CapAdd); len(caps) > 0 {
			out.Capabilities = &corev1.Capabilities{Add: caps}
		}
	}
	if c.User != "" {
		b.user(n, c.User, out)
	}
	for _, option := range n.SecurityOpts {
		if !securityOption(option, out, privileged) {
			b.diags.Warnf(apicheck.CodeSecurityOpt, n.Pos, "remove it, or set securityContext in an --overlay", "node %q: the security option %q has no counterpart in Kubernetes and is ignored", n.Name, option)
		}
	}
	if *out == (corev1.SecurityContext{}) {
		return nil
	}
	return out
}

// capabilities writes names as Kubernetes does: upper case, without "CAP_".
func capabilities(names []string) []corev1.Capability {
	out := make([]corev1.Capability, len(names))
	for i, name := range names {
		out[i] = corev1.Capability(strings.TrimPrefix(strings.ToUpper(name), "CAP_"))
	}
	return out
}

// user reads Docker's "uid[:gid]"; root is the one name that is 0 everywhere.
func (b *deploymentBuilder) user(n *lab.Node, text string, out *corev1.SecurityContext) {
	name, group, hasGroup := strings.Cut(text, ":")
	uid, ok := userID(name)
	if !ok {
		b.userError(n, text)
		return
	}
	out.RunAsUser = &uid
	if !hasGroup {
		return
	}
	gid, ok := userID(group)
	if !ok {
		b.userError(n, text)
		return
	}
	out.RunAsGroup = &gid
}

func (b *deploymentBuilder) userError(n *lab.Node, text string) {
	b.diags.Errorf(CodeUser, n.Pos, "write the numeric uid, and gid after a colon: user: \"1000:1000\"",
		"node %q runs as user %q, but Kubernetes accepts only numbers", n.Name, text)
}

func userID(name string) (int64, bool) {
	if name == "root" {
		return 0, true
	}
	id, err := strconv.ParseInt(name, 10, 32)
	return id, err == nil && id >= 0
}

// securityOption applies one of Docker's security options ("seccomp=unconfined";
// a colon is the old separator) and reports whether it has a counterpart.
func securityOption(option string, out *corev1.SecurityContext, privileged bool) bool {
	key, text, _ := strings.Cut(option, "=")
	if key == option {
		key, text, _ = strings.Cut(option, ":")
	}
	switch key {
	case "seccomp":
		if text != "unconfined" {
			return false
		}
		out.SeccompProfile = &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeUnconfined}
	case "apparmor":
		out.AppArmorProfile = appArmor(text)
	case "no-new-privileges":
		if text == "" || text == "true" {
			if privileged {
				return false // the API rejects the two together
			}
			out.AllowPrivilegeEscalation = new(false)
		}
	case "label":
		return selinuxOption(text, out)
	default:
		return false
	}
	return true
}

func appArmor(profile string) *corev1.AppArmorProfile {
	if profile == "unconfined" {
		return &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeUnconfined}
	}
	return &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeLocalhost, LocalhostProfile: &profile}
}

func selinuxOption(text string, out *corev1.SecurityContext) bool {
	if out.SELinuxOptions == nil {
		out.SELinuxOptions = &corev1.SELinuxOptions{}
	}
	if text == "disable" {
		out.SELinuxOptions.Type = "spc_t"
		return true
	}
	key, name, _ := strings.Cut(text, ":")
	switch key {
	case "user":
		out.SELinuxOptions.User = name
	case "role":
		out.SELinuxOptions.Role = name
	case "type":
		out.SELinuxOptions.Type = name
	case "level":
		out.SELinuxOptions.Level = name
	default:
		return false
	}
	return true
}
