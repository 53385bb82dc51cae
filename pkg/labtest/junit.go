package labtest

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"time"
)

type junitSuites struct {
	XMLName  xml.Name     `xml:"testsuites"`
	Name     string       `xml:"name,attr"`
	Tests    int          `xml:"tests,attr"`
	Failures int          `xml:"failures,attr"`
	Time     string       `xml:"time,attr"`
	Suites   []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name      string      `xml:"name,attr"`
	Tests     int         `xml:"tests,attr"`
	Failures  int         `xml:"failures,attr"`
	Errors    int         `xml:"errors,attr"`
	Skipped   int         `xml:"skipped,attr"`
	Time      string      `xml:"time,attr"`
	Timestamp string      `xml:"timestamp,attr"`
	Cases     []junitCase `xml:"testcase"`
}

type junitCase struct {
	Name    string        `xml:"name,attr"`
	Class   string        `xml:"classname,attr"`
	Time    string        `xml:"time,attr"`
	Failure *junitFailure `xml:"failure"`
	Skipped *junitFailure `xml:"skipped"`
	Out     string        `xml:"system-out,omitempty"`
}

type junitFailure struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// JUnit writes results in the form of JUnit, a suite for each group. JUnit has no warnings:
// they are skipped tests with their message.
func JUnit(w io.Writer, lab string, began time.Time, took time.Duration, results []Result) error {
	_, failed, _ := Count(results)
	all := junitSuites{Name: clean(lab), Tests: len(results), Failures: failed, Time: seconds(took.Seconds())}
	for _, r := range results {
		if n := len(all.Suites); n == 0 || all.Suites[n-1].Name != r.Group {
			all.Suites = append(all.Suites, junitSuite{Name: r.Group, Timestamp: began.UTC().Format("2006-01-02T15:04:05")})
		}
		s := &all.Suites[len(all.Suites)-1]
		c := junitCase{Name: clean(r.Name), Class: clean(lab + "." + r.Group), Time: seconds(r.Seconds)}
		s.Tests++
		switch r.State {
		case Failed:
			s.Failures++
			c.Failure = &junitFailure{Message: clean(r.Detail), Text: clean(r.Source)}
		case Warning:
			s.Skipped++
			c.Skipped = &junitFailure{Message: clean("warning: " + r.Detail)}
		default:
			c.Out = clean(r.Detail)
		}
		s.Cases = append(s.Cases, c)
	}
	for i := range all.Suites {
		sum := 0.0
		for _, r := range results {
			if r.Group == all.Suites[i].Name {
				sum += r.Seconds
			}
		}
		all.Suites[i].Time = seconds(sum)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(all); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func seconds(s float64) string { return fmt.Sprintf("%.3f", s) }

// clean leaves out what XML cannot hold: devices print it.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\t' || r == '\n' || r >= 0x20 && r != 0xfffe && r != 0xffff && r != 0x7f {
			return r
		}
		return -1
	}, strings.ToValidUTF8(text, "?"))
}
