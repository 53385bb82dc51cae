package cluster

import (
	"errors"
	"testing"
)

// What runtimes say about programs that they cannot run.
func TestNotRun(t *testing.T) {
	for text, code := range map[string]int{
		`Internal error occurred: Internal error occurred: error executing command in container: failed to exec in container: failed to start exec "4f1": OCI runtime exec failed: exec failed: unable to start container process: exec: "vtysh": executable file not found in $PATH`: codeNotFound,
		`Internal error occurred: error executing command in container: failed to exec in container: failed to start exec "4f1": OCI runtime exec failed: exec failed: unable to start container process: exec: "/bin/vtysh": stat /bin/vtysh: no such file or directory`:             codeNotFound,
		"error executing command in container: exec failed: unable to start container process: exec: \"/etc\": is a directory: permission denied":                                                                                                                                     codeNotExecutable,
		`error executing command in container: command error: executable file ` + "`vtysh`" + ` not found in $PATH: No such file or directory`:                                                                                                                                        codeNotFound,
		`error executing command in container: failed to exec in container: failed to start exec "4f1": OCI runtime exec failed: exec failed: unable to start container process: exec /tmp/x: exec format error`:                                                                      codeNotExecutable,
		`unable to upgrade connection: container not found ("r1")`: 0,
		`pods "r1" not found`: 0,
	} {
		var failed *ProgramError
		switch err := notRun(errors.New(text), "vtysh"); {
		case code == 0 && err != nil:
			t.Errorf("%s: %v", text, err)
		case code != 0 && (!errors.As(err, &failed) || failed.Code != code):
			t.Errorf("%s: %v, want %d", text, err, code)
		}
	}
	if notRun(nil, "vtysh") != nil {
		t.Error("no error became one")
	}
}
