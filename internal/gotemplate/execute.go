// Package gotemplate executes templates that others wrote, within bounds of time and
// size.
package gotemplate

import (
	"bytes"
	"context"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"text/template"
	"time"
)

const (
	// MaxText is the most that a template may produce, in bytes.
	MaxText = 64 << 20
	// MaxValue is the most that one value of a template may hold, in bytes.
	MaxValue = 4 << 20
	// maxTime is how long one may run.
	maxTime = 30 * time.Second
	// MaxParts is the most parts that a value may have, through all that it holds.
	MaxParts = 1 << 20
)

// Execute executes a template until it is done, ctx ends, 30 seconds are over, or it has
// written MaxText bytes.
func Execute(ctx context.Context, tmpl *template.Template, data any) ([]byte, error) {
	return within(ctx, maxTime, func(ctx context.Context) ([]byte, error) { return Inline(ctx, tmpl, data) })
}

// Within calls f, and returns without it when ctx ends or 30 seconds are over. A template
// cannot be interrupted: a loop that neither writes nor calls anything continues behind
// the back of who called, until the program ends.
func Within[T any](ctx context.Context, f func(context.Context) (T, error)) (T, error) {
	return within(ctx, maxTime, f)
}

func within[T any](ctx context.Context, limit time.Duration, f func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("it ran for more than %s", limit))
	defer cancel()
	type result struct {
		out T
		err error
	}
	done := make(chan result, 1)
	go func() {
		out, err := f(ctx)
		done <- result{out, err}
	}()
	select {
	case r := <-done:
		return r.out, r.err
	case <-ctx.Done():
		var none T
		return none, fmt.Errorf("template: %w", context.Cause(ctx))
	}
}

// Inline executes a template until it is done or has written MaxText bytes, or it writes
// after ctx has ended. Call it Within.
func Inline(ctx context.Context, tmpl *template.Template, data any) ([]byte, error) {
	out := buffers.Get().(*limitedBuffer)
	out.ctx = ctx
	out.text.Reset()
	err := tmpl.Execute(out, data)
	text := append([]byte(nil), out.text.Bytes()...) // nil if nothing was written
	if out.ctx = nil; out.text.Cap() <= maxKept {
		buffers.Put(out)
	}
	return text, err
}

// buffers are kept for the next template unless they have grown to more than maxKept bytes.
var buffers = sync.Pool{New: func() any { return new(limitedBuffer) }}

const maxKept = 1 << 20

// limitedBuffer rejects to grow past MaxText, and to continue after ctx.
type limitedBuffer struct {
	ctx  context.Context
	text bytes.Buffer
}

func (b *limitedBuffer) Write(p []byte) (int, error) {
	if b.ctx.Err() != nil {
		return 0, context.Cause(b.ctx)
	}
	if b.text.Len()+len(p) > MaxText {
		return 0, fmt.Errorf("the template produces more than %d bytes", MaxText)
	}
	return b.text.Write(p)
}

// Funcs are the functions of text/template that build text, within MaxValue.
func Funcs() template.FuncMap {
	return template.FuncMap{
		"print":   func(args ...any) (string, error) { return sprint(args, fmt.Sprint) },
		"println": func(args ...any) (string, error) { return sprint(args, fmt.Sprintln) },
		"printf": func(format string, args ...any) (string, error) {
			if err := formatFits(format, args); err != nil {
				return "", err
			}
			return sprint(args, func(args ...any) string { return fmt.Sprintf(format, args...) })
		},
		"html":     func(args ...any) (string, error) { return sprint(args, template.HTMLEscaper) },
		"js":       func(args ...any) (string, error) { return sprint(args, template.JSEscaper) },
		"urlquery": func(args ...any) (string, error) { return sprint(args, template.URLQueryEscaper) },
	}
}

func sprint(args []any, f func(...any) string) (string, error) {
	if err := Fits(args...); err != nil {
		return "", err
	}
	return Short(f(args...))
}

// Short rejects a text of more than MaxValue bytes.
func Short(text string) (string, error) {
	if len(text) > MaxValue {
		return "", ErrTooLong()
	}
	return text, nil
}

// ErrTooLong returns the error for a text of more than MaxValue bytes.
func ErrTooLong() error { return fmt.Errorf("a string has more than %d bytes", MaxValue) }

// Fits rejects values that are small in memory and huge when they are written, as lists
// of one and the same list.
func Fits(values ...any) error {
	_, err := count(values)
	return err
}

// count returns how many parts the values have, or an error if they do not fit.
func count(values []any) (parts int, err error) {
	m := measure{parts: MaxParts, bytes: MaxValue}
	for _, v := range values {
		if !m.add(reflect.ValueOf(v)) {
			return 0, fmt.Errorf("a value has more than %d parts or %d bytes", MaxParts, MaxValue)
		}
	}
	return MaxParts - m.parts, nil
}

// maxFormatted is the most memory that a format may take before the length of its text
// is known, in bytes.
const maxFormatted = 64 * MaxValue

// formatFits refuses a format that writes its arguments over and over ("%[1]s%[1]s"), or
// with a width or precision that makes much of little.
func formatFits(format string, args []any) error {
	parts, err := count(args)
	if err != nil {
		return err
	}
	parts++
	text := 16 * len(fmt.Sprint(args...)) // quoted, or in other digits, it is longer
	star := 0
	for _, a := range args {
		if v := reflect.ValueOf(a); v.CanInt() {
			star = max(star, int(v.Int()), -int(v.Int()))
		}
	}
	total := 0
	for _, verb := range strings.SplitAfter(format, "%")[1:] {
		total += text
		flags := verb[:len(verb)-len(strings.TrimLeft(verb, "-+# 0123456789.*[]"))]
		for _, n := range strings.FieldsFunc(flags, func(r rune) bool { return r != '*' && (r < '0' || r > '9') }) {
			width := star
			if !strings.Contains(n, "*") {
				width, _ = strconv.Atoi(n) // of too large a number it is the largest
			}
			total += min(width, maxWidth) * parts
		}
		if total > maxFormatted {
			return fmt.Errorf("a format may need more than %d bytes", maxFormatted)
		}
	}
	return nil
}

// maxWidth is package fmt's.
const maxWidth = 1_000_000

// measure is what is left for the parts and bytes of a value.
type measure struct{ parts, bytes int }

func (m *measure) add(v reflect.Value) bool {
	if m.parts--; m.parts < 0 {
		return false
	}
	switch v.Kind() {
	case reflect.String:
		m.bytes -= v.Len()
		return m.bytes >= 0
	case reflect.Interface, reflect.Pointer:
		return v.IsNil() || m.add(v.Elem())
	case reflect.Slice, reflect.Array:
		if k := v.Type().Elem().Kind(); k >= reflect.Bool && k <= reflect.Float64 {
			m.parts -= v.Len()
			return m.parts >= 0
		}
		for i := range v.Len() {
			if !m.add(v.Index(i)) {
				return false
			}
		}
	case reflect.Map:
		for it := v.MapRange(); it.Next(); {
			if !m.add(it.Key()) || !m.add(it.Value()) {
				return false
			}
		}
	}
	return true
}
