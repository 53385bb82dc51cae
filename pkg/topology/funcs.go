package topology

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/big"
	"net/netip"
	"reflect"
	"strconv"
	"strings"
	"text/template"

	"github.com/c9s-lab/c9s/internal/gotemplate"
)

// TemplateFuncs are the functions that containerlab gives to topology templates:
// ToJSON, ToJSONPretty, arithmetic, seq, slice, and the namespaces strings, conv
// and net.
func TemplateFuncs() template.FuncMap {
	funcs := template.FuncMap{
		"ToJSON": func(v any) (string, error) {
			if err := gotemplate.Fits(v); err != nil {
				return "", err
			}
			out, _ := json.Marshal(v)
			return gotemplate.Short(string(out))
		},
		"ToJSONPretty": func(v any, prefix, indent string) (string, error) {
			if err := gotemplate.Fits(v); err != nil {
				return "", err
			}
			out, _ := json.Marshal(v)
			if indented(out, prefix, indent) > gotemplate.MaxValue {
				return "", gotemplate.ErrTooLong()
			}
			var text bytes.Buffer
			_ = json.Indent(&text, out, prefix, indent) // a value that is no JSON is ""
			return text.String(), nil
		},
		"add":      func(a, b any) (any, error) { return arith(a, b, '+') },
		"subtract": func(a, b any) (any, error) { return arith(a, b, '-') },
		"mul":      func(a, b any) (any, error) { return arith(a, b, '*') },
		"div":      divide,
		"idiv":     func(a, b any) (any, error) { return integerDivide(a, b, '/') },
		"rem":      func(a, b any) (any, error) { return integerDivide(a, b, '%') },
		"seq":      sequence,
		"slice":    func(items ...any) ([]any, error) { return items, gotemplate.Fits(items...) },
		"strings":  func() stringFuncs { return stringFuncs{} },
		"conv":     func() convFuncs { return convFuncs{} },
		"net":      func() netFuncs { return netFuncs{} },
	}
	maps.Copy(funcs, gotemplate.Funcs())
	return funcs
}

// indented is at most how long a JSON text is with its elements on lines of their own.
func indented(text []byte, prefix, indent string) int {
	size, depth, quoted := len(text), 0, false
	line := func() { size += 1 + len(prefix) + depth*len(indent) }
	for i := 0; i < len(text); i++ {
		switch b := text[i]; {
		case quoted && b == '\\':
			i++
		case b == '"':
			quoted = !quoted
		case quoted:
		case b == ':':
			size++
		case b == '[' || b == '{':
			depth++
			line()
		case b == ']' || b == '}':
			depth--
			line()
		case b == ',':
			line()
		}
	}
	return size
}

// number is a template argument as an integer where it is one, else a float.
// Text is read as Go reads it, with thousands commas dropped.
func number(v any) (i int64, f float64, isInt bool, err error) {
	switch rv := reflect.ValueOf(v); rv.Kind() {
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return rv.Int(), float64(rv.Int()), true, nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		if rv.Uint() > math.MaxInt64 {
			return 0, 0, false, fmt.Errorf("%v is too large", v)
		}
		return int64(rv.Uint()), float64(rv.Uint()), true, nil
	case reflect.Float32, reflect.Float64:
		return int64(rv.Float()), rv.Float(), false, nil
	case reflect.Bool:
		if rv.Bool() {
			return 1, 1, true, nil
		}
		return 0, 0, true, nil
	case reflect.String:
		text := strings.ReplaceAll(rv.String(), ",", "")
		if i, err := strconv.ParseInt(text, 0, 64); err == nil {
			return i, float64(i), true, nil
		}
		if f, err := strconv.ParseFloat(text, 64); err == nil {
			return int64(f), f, false, nil
		}
	}
	return 0, 0, false, fmt.Errorf("%v is not a number", v)
}

func twoNumbers(a, b any) (ai, bi int64, af, bf float64, ints bool, err error) {
	ai, af, aInt, err := number(a)
	if err != nil {
		return
	}
	bi, bf, bInt, err := number(b)
	return ai, bi, af, bf, aInt && bInt, err
}

// arith stays with integers where both sides are.
func arith(a, b any, op byte) (any, error) {
	ai, bi, af, bf, ints, err := twoNumbers(a, b)
	if err != nil {
		return nil, err
	}
	switch op {
	case '+':
		if ints {
			return ai + bi, nil
		}
		return af + bf, nil
	case '-':
		return ai - bi, nil
	default:
		if ints {
			return ai * bi, nil
		}
		return af * bf, nil
	}
}

func divide(a, b any) (any, error) {
	_, _, af, bf, _, err := twoNumbers(a, b)
	if err != nil {
		return nil, err
	}
	if bf == 0 {
		return nil, errors.New("division by zero")
	}
	return af / bf, nil
}

func integerDivide(a, b any, op byte) (any, error) {
	ai, bi, _, _, _, err := twoNumbers(a, b)
	if err != nil {
		return nil, err
	}
	if bi == 0 {
		return nil, errors.New("division by zero")
	}
	if op == '/' {
		return ai / bi, nil
	}
	return ai % bi, nil
}

// maxSequence bounds seq, so that a template cannot take all memory.
const maxSequence = 1_000_000

// sequence is seq END, seq START END or seq START END STEP, both ends included;
// it counts down where END is below START.
func sequence(args ...any) ([]int64, error) {
	var n [3]int64
	if len(args) < 1 || len(args) > 3 {
		return nil, fmt.Errorf("seq takes one to three numbers, not %d", len(args))
	}
	for i, arg := range args {
		v, _, _, err := number(arg)
		if err != nil {
			return nil, err
		}
		n[i] = v
	}
	start, end, step := int64(1), n[0], int64(1)
	if len(args) > 1 {
		start, end = n[0], n[1]
	}
	if len(args) > 2 {
		step = n[2]
	}
	if step == 0 {
		return nil, errors.New("the step of seq must not be 0")
	}
	if (end < start) != (step < 0) {
		step = -step
	}
	between, stride := uint64(end)-uint64(start), uint64(step)
	if step < 0 {
		between, stride = -between, -stride
	}
	if between/stride >= maxSequence {
		return nil, fmt.Errorf("seq has more than the %d numbers allowed", maxSequence)
	}
	out := make([]int64, 0, between/stride+1)
	for i := range between/stride + 1 {
		out = append(out, start+int64(i)*step)
	}
	return out, nil
}

// stringFuncs is the namespace strings.
type stringFuncs struct{}

// Split cuts s at each sep.
func (stringFuncs) Split(sep string, s any) ([]string, error) {
	if err := gotemplate.Fits(s); err != nil {
		return nil, err
	}
	text := fmt.Sprint(s)
	if strings.Count(text, sep) > gotemplate.MaxParts {
		return nil, fmt.Errorf("%q splits the text into more than %d parts", sep, gotemplate.MaxParts)
	}
	return strings.Split(text, sep), nil
}

// ReplaceAll replaces every old in s.
func (stringFuncs) ReplaceAll(old, replacement string, s any) (string, error) {
	if s == nil {
		return "", nil
	}
	if err := gotemplate.Fits(s); err != nil {
		return "", err
	}
	text := fmt.Sprint(s)
	if old == "" {
		return text, nil
	}
	if len(text)+strings.Count(text, old)*(len(replacement)-len(old)) > gotemplate.MaxValue {
		return "", gotemplate.ErrTooLong()
	}
	return strings.ReplaceAll(text, old, replacement), nil
}

// convFuncs is the namespace conv.
type convFuncs struct{}

// Join puts the items of a list together.
func (convFuncs) Join(in any, sep string) (string, error) {
	rv := reflect.ValueOf(in)
	if rv.Kind() != reflect.Slice && rv.Kind() != reflect.Array {
		return "", fmt.Errorf("conv.Join takes a list, not %T", in)
	}
	if err := gotemplate.Fits(in); err != nil {
		return "", err
	}
	if rv.Len()*len(sep) > gotemplate.MaxValue {
		return "", gotemplate.ErrTooLong()
	}
	parts := make([]string, rv.Len())
	for i := range parts {
		parts[i] = fmt.Sprint(rv.Index(i).Interface())
	}
	return strings.Join(parts, sep), nil
}

// ToInt is the number without its fraction.
func (convFuncs) ToInt(in any) (int, error) {
	i, _, _, err := number(in)
	return int(i), err
}

// netFuncs is the namespace net.
type netFuncs struct{}

// CIDRHost is host number n of a prefix; a negative n counts from the end.
func (netFuncs) CIDRHost(n any, prefix any) (string, error) {
	p, err := netip.ParsePrefix(fmt.Sprint(prefix))
	if err != nil {
		return "", err
	}
	num, _, _, err := number(n)
	if err != nil {
		return "", err
	}
	base := new(big.Int).SetBytes(p.Masked().Addr().AsSlice())
	size := new(big.Int).Lsh(big.NewInt(1), uint(p.Addr().BitLen()-p.Bits()))
	host := big.NewInt(num)
	if num < 0 {
		host.Add(host, size)
	}
	if host.Sign() < 0 || host.Cmp(size) >= 0 {
		return "", fmt.Errorf("%s has no host number %d", p, num)
	}
	raw := make([]byte, p.Addr().BitLen()/8)
	new(big.Int).Add(base, host).FillBytes(raw)
	addr, _ := netip.AddrFromSlice(raw)
	return addr.String(), nil
}
