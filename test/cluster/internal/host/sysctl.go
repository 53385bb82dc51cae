package host

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// minimums are the host-wide limits that several workers on one kernel outgrow.
var minimums = map[string]int{
	"fs.inotify.max_user_instances":     8192,
	"fs.inotify.max_user_watches":       1048576,
	"net.ipv4.neigh.default.gc_thresh2": 8192,
	"net.ipv4.neigh.default.gc_thresh3": 16384,
	"net.ipv6.neigh.default.gc_thresh2": 8192,
	"net.ipv6.neigh.default.gc_thresh3": 16384,
}

// RaiseSysctls raises host-wide limits and keeps what they were in file. The
// first caller's record wins: it holds the values of an untouched host.
func RaiseSysctls(file string) error {
	before, err := readRecord(file)
	if err != nil {
		return err
	}
	if before == nil {
		before = map[string]string{}
		for name := range minimums {
			if value, err := readSysctl(name); err == nil {
				before[name] = value
			}
		}
		if err := writeRecord(file, before); err != nil {
			return err
		}
	}
	for name, least := range minimums {
		value, err := readSysctl(name)
		if err != nil {
			continue // not in this kernel, so no limit either
		}
		if present, err := strconv.Atoi(value); err == nil && present < least {
			if err := writeSysctl(name, strconv.Itoa(least)); err != nil {
				return err
			}
		}
	}
	return nil
}

// RestoreSysctls puts back what RaiseSysctls kept in file and removes it.
func RestoreSysctls(file string) error {
	before, err := readRecord(file)
	if err != nil || before == nil {
		return err
	}
	var problems []error
	for name, value := range before {
		if present, err := readSysctl(name); err == nil && present == value {
			continue
		}
		problems = append(problems, writeSysctl(name, value))
	}
	return errors.Join(append(problems, os.Remove(file))...)
}

func readRecord(file string) (map[string]string, error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var record map[string]string
	if err := json.Unmarshal(text, &record); err != nil {
		return nil, fmt.Errorf("reading the host's former settings: %w", err)
	}
	return record, nil
}

func writeRecord(file string, record map[string]string) error {
	text, err := json.MarshalIndent(record, "", "  ")
	if err != nil {
		return err
	}
	return WriteFile(file, text, 0o644)
}

func readSysctl(name string) (string, error) {
	text, err := os.ReadFile(sysctlPath(name))
	return strings.TrimSpace(string(text)), err
}

func writeSysctl(name, value string) error {
	if err := os.WriteFile(sysctlPath(name), []byte(value), 0o644); err != nil {
		return fmt.Errorf("setting sysctl %s to %s: %w", name, value, err)
	}
	return nil
}

func sysctlPath(name string) string {
	return filepath.Join("/proc/sys", strings.ReplaceAll(name, ".", "/"))
}

// WriteFile writes a file whole or not at all, with its folder.
func WriteFile(path string, text []byte, mode fs.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".tmp-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	if _, err := f.Write(text); err != nil {
		f.Close()
		return err
	}
	if err := errors.Join(f.Chmod(mode), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
