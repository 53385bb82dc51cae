package cluster

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSummaryUsage(t *testing.T) {
	got := map[ContainerKey]Usage{}
	err := summaryUsage([]byte(`{"node":{"nodeName":"w1"},"pods":[
		{"podRef":{"name":"r1-x","namespace":"lab","uid":"1"},"containers":[{"name":"r1","cpu":{"usageNanoCores":12500000},"memory":{"workingSetBytes":4096}},{"name":"wire"}]},
		{"podRef":{"name":"other","namespace":"else"},"containers":[{"name":"r1","cpu":{"usageNanoCores":1}}]}]}`), "lab", got)
	want := map[ContainerKey]Usage{{"r1-x", "r1"}: {CPU: 12.5, Memory: 4096}, {"r1-x", "wire"}: {}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
	if err := summaryUsage([]byte("no"), "lab", got); err == nil {
		t.Error("no summary is read")
	}
}
