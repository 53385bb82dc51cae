package hold

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/c9s-lab/c9s/pkg/contract"
)

// evictFile fills the folder.
const evictFile = "evict"

// terminationLog is where the kubelet finds a container's last words.
const terminationLog = "/dev/termination-log"

// LastWords leaves a message for the container's status, if the kubelet takes one.
func LastWords(text string) {
	if log, err := os.OpenFile(terminationLog, os.O_WRONLY|os.O_TRUNC, 0); err == nil {
		_, _ = log.WriteString(text)
		log.Close()
	}
}

// GiveUp has the Pod replaced. Nobody in it may delete it; but the kubelet evicts a Pod
// whose volume is over its limit, and its Deployment makes another one.
func GiveUp(stateDir string) error {
	LastWords(contract.LostMessage)
	f, err := os.OpenFile(filepath.Join(stateDir, evictFile), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.Fallocate(int(f.Fd()), 0, 0, contract.StateLimit+contract.StateLimit/8); err != nil && !errors.Is(err, unix.ENOSPC) {
		return fmt.Errorf("fill the Pod's folder, so that the Pod is evicted: %w", err)
	}
	return nil
}
