//go:build !nocluster

package cli

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/c9s-lab/c9s/pkg/labtest"
)

// TestExitCodesOfTest: the results are written whatever they are, and the exit code says which.
func TestExitCodesOfTest(t *testing.T) {
	result := func(state string) labtest.Result { return labtest.Result{Group: "links", Name: "x", State: state} }
	for _, tt := range []struct {
		results []labtest.Result
		want    error
		json    string
	}{
		{[]labtest.Result{}, exitCode(exitNoTest), `"results": []`},
		{[]labtest.Result{result(labtest.Passed)}, nil, `"passed": 1`},
		{[]labtest.Result{result(labtest.Passed), result(labtest.Warning)}, exitCode(exitWarnings), `"warnings": 1`},
		{[]labtest.Result{result(labtest.Warning), result(labtest.Failed)}, errFailed, `"failed": 1`},
	} {
		var out bytes.Buffer
		f := &testFlags{output: "json", junit: filepath.Join(t.TempDir(), "report.xml")}
		err := f.finish(IO{Out: &out, Err: &bytes.Buffer{}}, "demo", time.Now(), tt.results)
		if !errors.Is(err, tt.want) || !strings.Contains(out.String(), tt.json) {
			t.Errorf("%+v: %v, want %v\n%s", tt.results, err, tt.want, out.String())
		}
		if data, err := os.ReadFile(f.junit); err != nil || !strings.Contains(string(data), "<testsuites") {
			t.Errorf("%+v: %v\n%s", tt.results, err, data)
		}
	}
}
