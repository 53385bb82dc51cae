package lab

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// volume is a PersistentVolume by hand for one claim, since the cluster has no
// storage class: a folder of a worker, which goes with the test.
func (l *lab) volume(t *testing.T, claim, worker string) {
	t.Helper()
	dir := "/var/lib/c9s-e2e/" + l.ns
	ctx := context.Background()
	_, err := l.Typed.CoreV1().PersistentVolumes().Create(ctx, &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: l.ns},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			AccessModes:                   []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			ClaimRef:                      &corev1.ObjectReference{Namespace: l.ns, Name: claim},
			PersistentVolumeSource:        corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: dir, Type: new(corev1.HostPathDirectoryOrCreate)}},
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{worker}}},
			}}}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Typed.CoreV1().PersistentVolumes().Delete(ctx, l.ns, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
}

// A startup-config seeds what the device saves, and what it saved comes back with a new
// Pod, whoever planned the node.
func TestSavedConfiguration(t *testing.T) {
	planners := []string{"builtin"}
	if planner != "builtin" {
		planners = append(planners, planner)
	}
	for _, by := range planners {
		t.Run(by, func(t *testing.T) {
			l := written(t, "saved", map[string]string{
				"lab.clab.yml": `name: saved
topology:
  nodes:
    R1:
      kind: juniper_crpd
      image: ghcr.io/srl-labs/network-multitool:latest
      entrypoint: sleep infinity
      startup-config: seed.conf
`,
				"seed.conf": "host-name {{ .ShortName }};\n",
				"c9s.yaml":  "apiVersion: c9s.dev/v1\nkind: Policy\nprofiles:\n  - name: keep\n    set: {persistence: {enabled: true, size: 64Mi}}\n",
			})
			l.volume(t, "r1-data", l.Workers[0])
			l.deploy(t, "--planner", by)
			pod := l.pod(t, "r1")
			d, err := l.Typed.AppsV1().Deployments(l.ns).Get(t.Context(), "r1", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if name, _, _ := strings.Cut(d.Annotations["c9s.dev/planner"], "/"); name != by {
				t.Errorf("the Deployment says that %q planned it", d.Annotations["c9s.dev/planner"])
			}
			const file = "/config/juniper.conf"
			l.eventually(t, "R1", "host-name R1;", "cat", file)
			if out, err := l.in(t.Context(), "R1", "sh", "-c", "echo 'host-name edited;' >"+file); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			if err := l.Typed.CoreV1().Pods(l.ns).Delete(t.Context(), pod.Name, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			l.replaced(t, pod)
			l.ready(t)
			if out, err := l.in(t.Context(), "R1", "cat", file); err != nil || out != "host-name edited;\n" {
				t.Errorf("the new Pod has %q, want what was saved (%v)", out, err)
			}
			l.destroyed(t)
			l.OnNode(t, l.Workers[0], "rm", "-rf", filepath.Join("/var/lib/c9s-e2e", l.ns))
		})
	}
}

// What a device saves stays over restarts, deploys and a destroy that keeps data.
func TestPersistence(t *testing.T) {
	long(t)
	topology := func(config, more string) string {
		return `name: keep
topology:
  nodes:
    R1:
      kind: juniper_crpd
      image: ghcr.io/srl-labs/network-multitool:latest
      entrypoint: sleep infinity
      startup-config: ` + config + more + `
      volumes: ["records:/records"]
    R2: {kind: linux, image: "ghcr.io/srl-labs/network-multitool:latest"}
  links:
    - endpoints: ["R1:eth1", "R2:eth1"]
`
	}
	l := written(t, "keep", map[string]string{
		"lab.clab.yml": topology("one.conf", ""),
		"one.conf":     "# configuration one\n",
		"two.conf":     "# configuration two\n",
		"c9s.yaml":     "apiVersion: c9s.dev/v1\nkind: Policy\nprofiles:\n  - name: keep\n    match: {names: [R1]}\n    set: {persistence: {enabled: true, size: 64Mi}}\n",
	})
	l.volume(t, "r1-data", l.Workers[0])
	const file = "/config/juniper.conf"
	has := func(when, want string) {
		t.Helper()
		if out, err := l.in(t.Context(), "R1", "cat", file); err != nil || strings.TrimSpace(out) != want {
			t.Errorf("%s the configuration is %q, want %q (%v)", when, out, want, err)
		}
	}
	save := func(text string) {
		t.Helper()
		if out, err := l.in(t.Context(), "R1", "sh", "-c", fmt.Sprintf("echo '%s' >%s; echo '%s' >>/records/all", text, file, text)); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	edit := func(config, more string) {
		t.Helper()
		if err := os.WriteFile(l.topo, []byte(topology(config, more)), 0o644); err != nil {
			t.Fatal(err)
		}
		l.deploy(t)
	}
	restart := func() {
		t.Helper()
		old := l.pod(t, "r1")
		l.c9s(t, "restart", "R1", "-n", l.ns)
		if l.pod(t, "r1").UID == old.UID {
			t.Error("the Pod was not replaced")
		}
	}

	l.deploy(t)
	has("at first", "# configuration one")
	save("saved once")
	restart()
	has("after a restart", "saved once")
	edit("two.conf", "")
	has("with another startup-config", "saved once")
	edit("two.conf", "\n      enforce-startup-config: true")
	has("with an enforced startup-config", "# configuration two")
	save("saved in vain")
	restart()
	has("after a restart with an enforced startup-config", "# configuration two")
	edit("one.conf", "")
	has("no longer enforced", "# configuration two")
	save("saved to be kept")

	address := l.status(t).Nodes[0].IPv4
	l.c9s(t, "destroy", "keep", "-n", l.ns, "--keep-data", "--yes")
	if list, err := l.Typed.AppsV1().Deployments(l.ns).List(t.Context(), metav1.ListOptions{}); err != nil || len(list.Items) > 0 {
		t.Errorf("after destroy --keep-data there are %d Deployments, %v", len(list.Items), err)
	}
	if _, err := l.Typed.CoreV1().PersistentVolumeClaims(l.ns).Get(t.Context(), "r1-data", metav1.GetOptions{}); err != nil {
		t.Fatal(err)
	}
	l.deploy(t)
	has("after destroy --keep-data and deploy", "saved to be kept")
	if now := l.status(t).Nodes[0].IPv4; now != address {
		t.Errorf("R1 had the address %s and has %s", address, now)
	}
	if out, err := l.in(t.Context(), "R1", "cat", "/records/all"); err != nil || out != "saved once\nsaved in vain\nsaved to be kept\n" {
		t.Errorf("on the named volume: %q, %v", out, err)
	}
	l.reaches(t, "R1", "R2")
	l.destroyed(t)
	left := l.OnNode(t, l.Workers[0], "find", filepath.Join("/var/lib/c9s-e2e", l.ns), "-name", "juniper.conf")
	if strings.TrimSpace(left) == "" {
		t.Error("the volume was not this one's: nothing is in it")
	}
	l.OnNode(t, l.Workers[0], "rm", "-rf", filepath.Join("/var/lib/c9s-e2e", l.ns))
}

// TestSharedClaim: nodes of several Pods have one volume, as in containerlab, if the policy names
// a claim for it.
func TestSharedClaim(t *testing.T) {
	l := written(t, "together", map[string]string{
		"lab.clab.yml": `name: together
topology:
  defaults: {image: "ghcr.io/srl-labs/network-multitool:latest", volumes: ["records:/records"]}
  nodes:
    W: {kind: linux}
    R: {kind: linux}
`,
		"c9s.yaml": "apiVersion: c9s.dev/v1\nkind: Policy\nshared-claim: everyone\nprofiles: []\n",
	})
	l.namespace(t, nil)
	ctx := t.Context()
	// Workers share the machine's /dev/shm, as they would share a file server.
	dir := "/dev/shm/c9s-e2e-" + l.ns
	shared := []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
	size := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("64Mi")}
	_, err := l.Typed.CoreV1().PersistentVolumes().Create(ctx, &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: l.ns},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: size, AccessModes: shared, PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			ClaimRef:               &corev1.ObjectReference{Namespace: l.ns, Name: "everyone"},
			PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: dir, Type: new(corev1.HostPathDirectoryOrCreate)}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Typed.CoreV1().PersistentVolumes().Delete(context.Background(), l.ns, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if _, err := l.Typed.CoreV1().PersistentVolumeClaims(l.ns).Create(ctx, &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "everyone"},
		Spec:       corev1.PersistentVolumeClaimSpec{AccessModes: shared, StorageClassName: new(""), VolumeName: l.ns, Resources: corev1.VolumeResourceRequirements{Requests: size}},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	l.deploy(t)
	if out, err := l.in(ctx, "W", "sh", "-c", "echo of W >/records/note"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	l.eventually(t, "R", "of W", "cat", "/records/note")
	l.c9s(t, "destroy", "together", "-n", l.ns, "--yes")
	if _, err := l.Typed.CoreV1().PersistentVolumeClaims(l.ns).Get(ctx, "everyone", metav1.GetOptions{}); err != nil {
		t.Errorf("the user's claim after destroy: %v", err)
	}
}
