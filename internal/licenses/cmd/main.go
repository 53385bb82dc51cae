// Command licenses writes the licences of all that packages link into a file.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"runtime"

	"github.com/c9s-lab/c9s/internal/licenses"
)

func main() {
	dir := flag.String("C", ".", "folder of the module")
	output := flag.String("o", "", "file to write")
	flag.Parse()
	modules, err := licenses.Linked(context.Background(), *dir, []licenses.Platform{{OS: runtime.GOOS, Arch: runtime.GOARCH}}, flag.Args()...)
	if err == nil {
		err = os.WriteFile(*output, licenses.All(modules), 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
