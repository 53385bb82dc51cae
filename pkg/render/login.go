package render

import (
	"crypto/sha256"
	"path"

	corev1 "k8s.io/api/core/v1"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/lab"
)

// The SSH probe: a login takes devices some seconds, and the sidecar gives it loginSeconds.
const (
	loginPeriod  = 10
	loginSeconds = 15
	loginTries   = 3
)

// login is how the sidecar logs in to the node, nil for one without an SSH probe. A password of
// the policy is in a Secret, and is written to no folder of the node.
func (s *stager) login(m member) *contract.SSHLogin {
	probe := m.node.Policy.SSH
	switch {
	case probe == nil:
		return nil
	case s.pod.hostNetwork || len(m.plan.Containers) == 0:
		s.diags.Errorf(CodeHostNetwork, probe.Pos, "exclude the node from the profile",
			"node %q has no management address of its own that an SSH probe could log in to", m.node.Name)
		return nil
	}
	out := &contract.SSHLogin{Port: probe.Port, Username: probe.Username}
	switch {
	case probe.Secret != "":
		out.PasswordFile = path.Join(contract.LoginDir, m.node.ID, probe.Key)
	case probe.Password != "":
		data := []byte(probe.Password)
		out.PasswordFile = path.Join(contract.FilesDir, s.secret.put("login/"+m.node.ID, data, sha256.Sum256(data), true)[0])
	}
	return out
}

// loginMounts are the passwords that only the cluster has, for the wire container.
func (b *deploymentBuilder) loginMounts() []corev1.VolumeMount {
	var out []corev1.VolumeMount
	for _, m := range b.pod.members {
		if p := m.node.Policy.SSH; p != nil && p.Secret != "" {
			volume := b.clusterVolume(lab.ClusterFile{Secret: p.Secret, Key: p.Key, Mode: 0o400})
			out = append(out, corev1.VolumeMount{Name: volume, MountPath: path.Join(contract.LoginDir, m.node.ID), ReadOnly: true})
		}
	}
	return out
}

// loginProbe has the helper ask the sidecar to log in. What the kind tests comes after it.
func loginProbe(m member) *corev1.Probe {
	argv := []string{path.Join(contract.HelperDir, contract.HelperFile), "login", m.node.ID}
	if m.plan.Readiness != nil {
		if test := healthArgv(m.plan.Readiness.Healthcheck.Test); test != nil {
			argv = append(append(argv, "--"), test...)
		}
	}
	return &corev1.Probe{
		ProbeHandler:     corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: literals(argv)}},
		PeriodSeconds:    loginPeriod,
		TimeoutSeconds:   loginSeconds + 5,
		FailureThreshold: loginTries,
	}
}
