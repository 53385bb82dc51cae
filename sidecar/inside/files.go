package inside

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"io/fs"

	"github.com/c9s-lab/c9s/pkg/transfer"
)

// Pack writes a file or folder of the container as a tar stream.
func Pack(args []string, out, errs io.Writer) error {
	flags := flag.NewFlagSet("pack", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	name := flags.String("name", "", "")
	follow := flags.Bool("follow", false, "")
	if err := flags.Parse(args); err != nil || flags.NArg() != 1 || *name == "" {
		return ErrUsage
	}
	w := bufio.NewWriterSize(out, 64<<10)
	err := transfer.Pack(w, flags.Arg(0), transfer.PackOptions{Name: *name, Follow: *follow, Skipped: func(path string) {
		fmt.Fprintf(errs, "%s is left out: it is no file, folder or link\n", path)
	}})
	if err != nil {
		return err
	}
	return w.Flush()
}

// Unpack writes the files of a tar stream to the container, and prints what it did as JSON.
func Unpack(args []string, in io.Reader, out io.Writer) error {
	o := transfer.UnpackOptions{Modes: fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky}
	flags := flag.NewFlagSet("unpack", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.BoolVar(&o.Inside, "inside", false, "")
	flags.BoolVar(&o.Whole, "whole", false, "")
	flags.BoolVar(&o.Owners, "owners", false, "")
	if err := flags.Parse(args); err != nil || flags.NArg() != 1 {
		return ErrUsage
	}
	done, err := transfer.Unpack(in, flags.Arg(0), o)
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(done)
}
