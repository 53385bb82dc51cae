package labtest

import (
	"bytes"
	"encoding/xml"
	"testing"
	"time"
)

func TestJUnit(t *testing.T) {
	var b bytes.Buffer
	err := JUnit(&b, "demo", time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), 2500*time.Millisecond, []Result{
		{Group: "links", Name: "R1:eth1 - R2:eth1", State: Passed, Detail: "9500 bytes both ways", Seconds: 0.5},
		{Group: "links", Name: "R1:eth2 - R3:eth1", State: Warning, Detail: "cannot be tested", Seconds: 0.25},
		{Group: "commands", Name: "R1: <show>", State: Failed, Detail: "\x1b[31mit says \"no\" & more\x00", Seconds: 1, Source: "x.test.yaml:3:5"},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := `<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="demo" tests="3" failures="1" time="2.500">
  <testsuite name="links" tests="2" failures="0" errors="0" skipped="1" time="0.750" timestamp="2026-01-02T03:04:05">
    <testcase name="R1:eth1 - R2:eth1" classname="demo.links" time="0.500">
      <system-out>9500 bytes both ways</system-out>
    </testcase>
    <testcase name="R1:eth2 - R3:eth1" classname="demo.links" time="0.250">
      <skipped message="warning: cannot be tested"></skipped>
    </testcase>
  </testsuite>
  <testsuite name="commands" tests="1" failures="1" errors="0" skipped="0" time="1.000" timestamp="2026-01-02T03:04:05">
    <testcase name="R1: &lt;show&gt;" classname="demo.commands" time="1.000">
      <failure message="[31mit says &#34;no&#34; &amp; more">x.test.yaml:3:5</failure>
    </testcase>
  </testsuite>
</testsuites>
`
	if got := b.String(); got != want {
		t.Errorf("got\n%s", got)
	}
	if err := xml.Unmarshal(b.Bytes(), new(junitSuites)); err != nil {
		t.Error(err)
	}
}
