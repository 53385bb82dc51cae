package binaries

import (
	"context"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
)

// disk reports what the programs take on disk, and Go's own caches, where building them
// leaves most.
func (c Cache) disk(ctx context.Context) string {
	text := gigabytes(size(c.Bin())) + " of programs"
	out, err := goCommand(ctx, c.Dir, "env", "GOCACHE", "GOMODCACHE").Output()
	dirs := strings.Fields(string(out))
	if err != nil || len(dirs) != 2 {
		return text
	}
	return fmt.Sprintf("%s; Go's caches have %s of builds and %s of modules in them", text, gigabytes(size(dirs[0])), gigabytes(size(dirs[1])))
}

// size is the sum of the files' sizes below a folder, in bytes, as far as it can be
// read.
func size(dir string) int64 {
	var sum int64
	_ = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return nil
		}
		if info, err := e.Info(); err == nil {
			sum += info.Size()
		}
		return nil
	})
	return sum
}

func gigabytes(n int64) string { return fmt.Sprintf("%.1f GB", float64(n)/1e9) }
