// Package doctor reports whether a cluster can run c9s' labs, or one lab. Facts are
// collected at the edge; what they mean is found by pure functions, one a check.
package doctor

// Version names the shape of Report in JSON.
const Version = "c9s.dev/doctor/v1"

// Result is what a check says.
type Result string

// The results.
const (
	OK      Result = "ok"
	Warning Result = "warning" // it runs, with less; or it could not be looked at
	Problem Result = "problem" // it does not run
)

// Check is one thing that was looked at.
type Check struct {
	Name   string `json:"name"`
	Result Result `json:"result"`
	// Found is what there is, Remedy what to do about it.
	Found  string `json:"found"`
	Remedy string `json:"remedy,omitempty"`
}

// Report is all of it.
type Report struct {
	Version string `json:"version"`
	// Context is the kubeconfig's.
	Context   string `json:"context,omitempty"`
	Namespace string `json:"namespace"`
	// Lab is the lab that was asked about; "" for any.
	Lab    string  `json:"lab,omitempty"`
	Checks []Check `json:"checks"`
}

// Problems is how many checks say that it will not run.
func (r Report) Problems() int { return count(r.Checks, Problem) }

// Warnings is how many say that it will run with less.
func (r Report) Warnings() int { return count(r.Checks, Warning) }

func count(checks []Check, result Result) int {
	n := 0
	for _, c := range checks {
		if c.Result == result {
			n++
		}
	}
	return n
}

// checks are all of them, in the order of the report: what stops everything comes
// first. Each may find several things or nothing.
var checks = []func(Facts, Needs) []Check{
	checkVersion, checkNamespace, checkAdmission, checkNear, checkRights,
	checkWorkers, checkClocks, checkRuntimes, checkDevices, checkCapacity,
	checkStorage, checkLoadBalancer, checkDNS,
	checkProbes, checkKernel, checkMTU, checkPolicies,
}

// Examine finds what the facts mean for what is needed.
func Examine(f Facts, n Needs) []Check {
	var out []Check
	for _, check := range checks {
		out = append(out, check(f, n)...)
	}
	return out
}

// needed is Problem where a lab needs what is missing, and Warning where only some
// other lab would.
func (n Needs) needed(is bool) Result {
	if is {
		return Problem
	}
	return Warning
}

// unread is the check of something that the user may not look at.
func unread(name string, err error) []Check {
	return []Check{{Name: name, Result: Warning, Found: "it cannot be read: " + err.Error(), Remedy: "ask someone with more rights to run this command"}}
}
