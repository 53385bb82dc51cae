// Package machine keeps the disk of a virtual machine in a folder that outlives its container.
//
// Images of vrnetlab boot from an overlay that they create beside the disk image:
// "qemu-img create -f qcow2 -F FORMAT -b IMAGE OVERLAY". A container that starts again has a
// fresh file system without it. Where the disk is to stay, the helper is in the PATH of the
// container as qemu-img: it makes the overlay a symbolic link into the folder, and runs the
// image's qemu-img only for an overlay that is not there yet.
package machine

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Disks runs qemu-img for a launcher.
type Disks struct {
	// Dir is the folder that stays.
	Dir string
	// Run runs the image's own qemu-img.
	Run func(args []string) error
	// Log is for the user, beside what the launcher prints.
	Log io.Writer
}

// QemuImg does what "qemu-img ARGS" does, with overlays in the folder.
func (d Disks) QemuImg(args []string) error {
	image, overlay, ok := parse(args)
	if !ok {
		return d.Run(args)
	}
	if _, err := os.Lstat(overlay); err == nil {
		return d.Run(args) // somebody else's file
	}
	kept := filepath.Join(d.Dir, strings.ReplaceAll(strings.Trim(filepath.Clean(overlay), "/"), "/", "_"))
	made, err := identify(image)
	if err != nil {
		return d.Run(args)
	}
	if d.current(kept, made) {
		return os.Symlink(kept, overlay)
	}
	if err := os.Symlink(kept, overlay); err != nil {
		return err
	}
	// Without the note, a disk is not complete.
	if err := d.Run(args); err != nil {
		return err
	}
	return os.WriteFile(note(kept), []byte(made), 0o644)
}

// current reports whether there is an overlay of that disk image. One of another image is of
// no use, since it holds only what differs: it is set aside, in place of an earlier one.
func (d Disks) current(kept, image string) bool {
	text, err := os.ReadFile(note(kept))
	if err != nil {
		_ = os.Remove(kept)
		return false
	}
	if string(text) == image {
		return true
	}
	fmt.Fprintf(d.Log, "c9s: the disk image has changed; the saved disk does not fit it and is now %s.old\n", kept)
	_ = os.Remove(note(kept))
	_ = os.Rename(kept, kept+".old")
	return false
}

func note(kept string) string { return kept + ".image" }

// identify tells disk images apart without reading gigabytes: files of an image's layers keep
// their times.
func identify(image string) (string, error) {
	info, err := os.Stat(image)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s %d %d\n", image, info.Size(), info.ModTime().Unix()), nil
}

// parse finds the overlay that arguments create, and the disk image below it.
func parse(args []string) (image, overlay string, ok bool) {
	if len(args) == 0 || args[0] != "create" {
		return "", "", false
	}
	var names []string
	for rest := args[1:]; len(rest) > 0; rest = rest[1:] {
		switch a := rest[0]; {
		case a == "-b" && len(rest) > 1:
			image, rest = rest[1], rest[1:]
		case slices.Contains([]string{"-f", "-F", "-o"}, a) && len(rest) > 1:
			rest = rest[1:]
		case strings.HasPrefix(a, "-"):
		default:
			names = append(names, a)
		}
	}
	if image == "" || len(names) != 1 { // with a size, it is not what vrnetlab does
		return "", "", false
	}
	return image, names[0], true
}

// Original returns what runs the qemu-img that comes next in PATH.
func Original(self string) func(args []string) error {
	return func(args []string) error {
		for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
			if dir == "" || filepath.Clean(dir) == self {
				continue
			}
			program := filepath.Join(dir, "qemu-img")
			if info, err := os.Stat(program); err != nil || !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
				continue
			}
			cmd := exec.Command(program, args...)
			cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
			return cmd.Run()
		}
		return errors.New("there is no qemu-img in PATH")
	}
}
