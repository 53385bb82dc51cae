// Package e2e runs c9s against a real cluster, and checks that the cluster is one.
package e2e

import (
	"os"
	"testing"

	"github.com/c9s-lab/c9s/test/cluster/testcluster"
)

func TestMain(m *testing.M) {
	os.Exit(testcluster.Run(m, testcluster.Options{IPv6: true, Images: []string{"linux", "frr"}}))
}
