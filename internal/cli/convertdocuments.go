package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/c9s-lab/c9s/internal/cli/show"
	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/c9s-lab/c9s/pkg/pipeline"
)

// convertDocuments writes clabernetes' documents as a topology, a policy and the files that
// they name.
func (f *convertFlags) convertDocuments(_ context.Context, world IO, c *pipeline.Compiled) error {
	report(world, c.Diags)
	if hasErrors(c.Diags) || c.Lab == nil {
		fmt.Fprintf(world.Err, "%s; nothing was written\n", summary(c.Diags))
		return errFailed
	}
	topology, policy, err := c.Documents.Texts(f.adopt)
	if err != nil {
		return fail(err)
	}
	files := c.Documents.Files
	if f.output == "" {
		if _, err := fmt.Fprintf(show.Document(world.Out), "%s---\n%s", topology, policy); err != nil {
			return fail(err)
		}
		if len(files) > 0 {
			fmt.Fprintf(world.Err, "%s not printed; use -o FOLDER to write everything\n", diag.Count(len(files), "file"))
		}
		return nil
	}
	if strings.Contains(topology, "{{") {
		fmt.Fprintln(world.Err, "the topology contains \"{{\", which containerlab reads as a template; check it")
	}
	name := filepath.Base(c.Lab.Name) + ".clab.yml"
	contents := map[string][]byte{name: []byte(topology), "c9s.yaml": []byte(policy)}
	modes := map[string]fs.FileMode{name: 0o644, "c9s.yaml": 0o644}
	var secrets []string
	for file, v := range files {
		contents[file], modes[file] = v.Data, fs.FileMode(v.Mode)
		if v.Secret {
			modes[file] &^= 0o077
			secrets = append(secrets, file)
		}
	}
	if err := writeNew(f.output, contents, modes); err != nil {
		return fail(err)
	}
	fmt.Fprintf(world.Err, "%s: %s written; deploy the lab with: c9s deploy %s -n %s\n", f.output, diag.Count(len(contents), "file"), filepath.Join(f.output, name), c.Lab.Namespace)
	if len(secrets) > 0 {
		slices.Sort(secrets)
		fmt.Fprintf(world.Err, "%s from Secrets: do not commit %s\n", diag.Count(len(secrets), "file"), show.Cell(strings.Join(secrets, ", ")))
	}
	return nil
}

// writeNew writes files to a folder. It writes nothing if one of them exists.
func writeNew(folder string, contents map[string][]byte, modes map[string]fs.FileMode) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	defer root.Close()
	names := slices.Sorted(maps.Keys(contents))
	for _, name := range names {
		if _, err := root.Lstat(filepath.FromSlash(name)); err == nil {
			return fmt.Errorf("%s exists; choose another folder, or delete it first; nothing was written", filepath.Join(folder, name))
		} else if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	for _, name := range names {
		local := filepath.FromSlash(name)
		if err := root.MkdirAll(filepath.Dir(local), 0o755); err != nil {
			return err
		}
		file, err := root.OpenFile(local, os.O_CREATE|os.O_EXCL|os.O_WRONLY, modes[name])
		if err != nil {
			return err
		}
		_, err = file.Write(contents[name])
		if err = errors.Join(err, file.Close()); err != nil {
			return err
		}
	}
	return nil
}
