package contract

// Gate holds the conditions for a node's start.
type Gate struct {
	// DelaySeconds is containerlab's startup-delay.
	DelaySeconds int `json:"delaySeconds,omitempty"`
	// Create delays the device: the sidecar's startup probe fails until all of
	// these stages are over.
	Create []WaitFor `json:"create,omitempty"`
	// CreateLinks delays only the data interfaces; the device runs.
	CreateLinks []WaitFor `json:"createLinks,omitempty"`
}

// WaitFor names a stage of another node that must be over.
type WaitFor struct {
	Node string `json:"node"`
	// Pod is the Kubernetes name of that node's Pod.
	Pod   string `json:"pod"`
	Stage string `json:"stage"`
}

// Container is one device container that runs the helper.
type Container struct {
	// Name is the Kubernetes name of the container, and the name of its folders
	// below ExecDir and RunDir.
	Name    string  `json:"name"`
	Program Program `json:"program"`
	// Payloads are files that the program writes in the device; their paths are
	// relative to the container's folder in ExecDir.
	Payloads []Entry `json:"payloads,omitempty"`
}

// ProgramVersion is the version of Program in JSON.
const ProgramVersion = "c9s.dev/steps/v1"

// Program is steps.json: the steps that the exec helper runs in a device
// container, in order. The container's postStart hook starts it:
// /c9s/exec run --steps /c9s/steps.json.
type Program struct {
	Version string `json:"version"`
	Node    string `json:"node"`
	// Strict makes the hook wait for the end and fail with the first step that
	// fails, so that the kubelet restarts the container. Otherwise the helper
	// goes to the background at once, always succeeds, and continues after a
	// failure.
	Strict bool `json:"strict,omitempty"`
	// Hold makes the helper hold the sidecar's network namespace as well, which it
	// gets at HoldSocket.
	Hold  bool   `json:"hold,omitempty"`
	Steps []Step `json:"steps,omitempty"`
}

// Step is one action. Exactly one of its fields Run to WaitFor is set.
type Step struct {
	// Name is for people.
	Name string `json:"name,omitempty"`
	// User means that the step comes from the topology.
	User bool `json:"user,omitempty"`

	Run   *Run   `json:"run,omitempty"`
	Wait  *Wait  `json:"wait,omitempty"`
	Write *Write `json:"write,omitempty"`
	CLI   *CLI   `json:"cli,omitempty"`
	// Over records that a stage of the node is over ("create", "create-links",
	// "configure", "healthy"), for the nodes that wait for it.
	Over string `json:"over,omitempty"`
	// WaitFor polls the Pod's own sidecar until the stages of other nodes are over.
	// GET /stages?pod=<pod>&node=<node>&stage=<stage> at SocketFile
	// answers 204 if it is over, 202 if it is not.
	WaitFor []WaitFor `json:"waitFor,omitempty"`
}

// Run runs a command and waits for it to end.
type Run struct {
	Argv []string `json:"argv"`
	// Input is passed on standard input.
	Input string `json:"input,omitempty"`
	// Detach does not wait for the end.
	Detach bool `json:"detach,omitempty"`
}

// Wait repeats a command until its output is as expected.
type Wait struct {
	Argv []string `json:"argv"`
	// Contains must occur in standard output; if empty, exit code 0 is enough.
	Contains string `json:"contains,omitempty"`
	// EmptyStderr requires that the command writes nothing to standard error.
	EmptyStderr bool `json:"emptyStderr,omitempty"`
	// IntervalSeconds between tries; TimeoutSeconds in all, 0 for no end.
	IntervalSeconds int `json:"intervalSeconds"`
	TimeoutSeconds  int `json:"timeoutSeconds,omitempty"`
}

// Write puts a payload into the device's file system.
type Write struct {
	Path string `json:"path"`
	Mode Mode   `json:"mode"`
	// Payload is relative to HelperDir; "" writes an empty file.
	Payload string `json:"payload,omitempty"`
}

// CLI types lines into an interactive program on a terminal.
type CLI struct {
	Argv  []string `json:"argv"`
	Lines []string `json:"lines"`
}

// ResultVersion is the version of Result in JSON.
const ResultVersion = "c9s.dev/result/v1"

// Result is result.json: the helper's progress.
type Result struct {
	Version string `json:"version"`
	// Done means that the program has ended.
	Done bool `json:"done"`
	// Over lists the stages that are over, in their order.
	Over []string `json:"over,omitempty"`
	// Steps lists the steps begun so far, by their index in the program.
	Steps []StepResult `json:"steps,omitempty"`
}

// StepResult is the outcome of one step that runs something.
type StepResult struct {
	Index int `json:"index"`
	// Name and User are the step's own.
	Name     string `json:"name,omitempty"`
	User     bool   `json:"user,omitempty"`
	Running  bool   `json:"running,omitempty"`
	ExitCode int    `json:"exitCode"`
	Error    string `json:"error,omitempty"`
	// Output is the end of the command's output, at most 4 KiB.
	Output string `json:"output,omitempty"`
}
