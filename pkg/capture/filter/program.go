// Package filter compiles filters in tcpdump's language to programs that the kernel runs. It has
// the part of the language that docs/guides/capture.md lists, and rejects the rest.
package filter

import (
	"fmt"

	"golang.org/x/net/bpf"
)

// whole is the number of bytes that a program keeps of a frame.
const whole = 1 << 18

// Compile compiles a filter for Ethernet frames. An empty one accepts everything.
func Compile(text string) ([]bpf.RawInstruction, error) {
	program, err := compile(text)
	if err != nil {
		return nil, fmt.Errorf("filter %q: %w", text, err)
	}
	return bpf.Assemble(program)
}

func compile(text string) ([]bpf.Instruction, error) {
	e, err := parse(text)
	if err != nil {
		return nil, err
	}
	var a assembler
	a.linkLayer()
	accept, reject := a.label(), a.label()
	a.branch(e, accept, reject)
	a.place(accept)
	a.add(bpf.RetConstant{Val: whole})
	a.place(reject)
	a.add(bpf.RetConstant{Val: 0})
	return a.link()
}

// An expr is a condition on a frame.
type expr interface{}

type (
	both   struct{ a, b expr }
	either struct{ a, b expr }
	no     struct{ a expr }
	always struct{}
	// test loads a value by some instructions, and compares it.
	test struct {
		load []bpf.Instruction
		cond bpf.JumpTest
		val  uint32
	}
)

func all(list ...expr) expr {
	e := list[0]
	for _, next := range list[1:] {
		e = both{e, next}
	}
	return e
}

func any(list ...expr) expr {
	e := list[0]
	for _, next := range list[1:] {
		e = either{e, next}
	}
	return e
}

// assembler writes instructions whose jumps lead to labels.
type assembler struct {
	out    []bpf.Instruction
	jumps  map[int]int // by index in out: the label
	labels []int       // by label: the index in out
}

func (a *assembler) add(list ...bpf.Instruction) { a.out = append(a.out, list...) }

func (a *assembler) label() int {
	a.labels = append(a.labels, -1)
	return len(a.labels) - 1
}

func (a *assembler) place(label int) { a.labels[label] = len(a.out) }

func (a *assembler) jump(label int) {
	if a.jumps == nil {
		a.jumps = map[int]int{}
	}
	a.jumps[len(a.out)] = label
	a.add(bpf.Jump{})
}

// tagged is the length of a VLAN tag in the frame. Linux passes most tags apart from the frame.
const tagged = 4

// base is the scratch cell with the length of the tags in the frame.
const base = 0

// linkLayer notes whether the frame has a VLAN tag in it.
func (a *assembler) linkLayer() {
	a.add(
		bpf.LoadAbsolute{Off: 12, Size: 2},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: 0x8100, SkipTrue: 3},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: 0x88a8, SkipTrue: 2},
		bpf.LoadConstant{Dst: bpf.RegX, Val: 0},
		bpf.Jump{Skip: 1},
		bpf.LoadConstant{Dst: bpf.RegX, Val: tagged},
		bpf.StoreScratch{Src: bpf.RegX, N: base},
	)
}

// branch writes the test of a condition, with a jump for each outcome.
func (a *assembler) branch(e expr, yes, not int) {
	switch e := e.(type) {
	case both:
		middle := a.label()
		a.branch(e.a, middle, not)
		a.place(middle)
		a.branch(e.b, yes, not)
	case either:
		middle := a.label()
		a.branch(e.a, yes, middle)
		a.place(middle)
		a.branch(e.b, yes, not)
	case no:
		a.branch(e.a, not, yes)
	case test:
		a.add(e.load...)
		// Conditional jumps are short, others are not.
		a.add(bpf.JumpIf{Cond: e.cond, Val: e.val, SkipFalse: 1})
		a.jump(yes)
		a.jump(not)
	default: // always
		a.jump(yes)
	}
}

// maxInstructions is the kernel's limit.
const maxInstructions = 4096

func (a *assembler) link() ([]bpf.Instruction, error) {
	if len(a.out) > maxInstructions {
		return nil, fmt.Errorf("it is too long: %d instructions, and the kernel takes %d", len(a.out), maxInstructions)
	}
	for at, label := range a.jumps {
		a.out[at] = bpf.Jump{Skip: uint32(a.labels[label] - at - 1)}
	}
	return a.out, nil
}
