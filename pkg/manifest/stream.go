package manifest

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/c9s-lab/c9s/internal/inorder"
)

// Format is how a stream of objects is written.
type Format string

const (
	// YAML is one document an object, with the source line as a comment above it.
	YAML Format = "yaml"
	// JSON is one v1 List.
	JSON Format = "json"
)

// WriteStream writes objs in their order.
func WriteStream(w io.Writer, objs []Object, format Format) error {
	buffered := bufio.NewWriterSize(w, 1<<16)
	var err error
	switch format {
	case YAML:
		err = writeYAML(buffered, objs, (*Object).line)
	case JSON:
		err = writeList(buffered, objs)
	default:
		return fmt.Errorf("output format %q: use yaml or json", format)
	}
	if err != nil {
		return err
	}
	return buffered.Flush()
}

// writeYAML writes documents, each with a comment above it.
func writeYAML(w io.Writer, objs []Object, comment func(*Object) string) error {
	return inorder.Do(len(objs), func(i int) (*[]byte, error) {
		scratch := scratches.Get().(*[]byte)
		b := (*scratch)[:0]
		if i > 0 {
			b = append(b, "---\n"...)
		}
		var err error
		*scratch, err = objs[i].appendDocument(b, comment(&objs[i]))
		return scratch, err
	}, func(scratch *[]byte) error {
		_, err := w.Write(*scratch)
		scratches.Put(scratch)
		return err
	})
}

// line is the line of the topology that the object comes from.
func (o *Object) line() string { return o.Source }

// node is the node that the object comes from, without its line: in a folder a file changes
// only if it means something else.
func (o *Object) node() string {
	file, found := strings.CutSuffix(o.Source, ":"+strconv.Itoa(o.Pos.Line))
	if found && o.Node != "" {
		return file + ", node " + o.Node
	}
	return file
}

// appendDocument writes the object as one YAML document with a comment above it.
func (o *Object) appendDocument(b []byte, comment string) ([]byte, error) {
	data, err := o.JSON()
	if err != nil {
		return nil, err
	}
	if comment != "" {
		b = append(append(append(b, "# "...), comment...), '\n')
	}
	return appendYAML(b, data, o.Comments)
}

func writeList(w io.Writer, objs []Object) error {
	if _, err := io.WriteString(w, "{\n  \"apiVersion\": \"v1\",\n  \"kind\": \"List\",\n  \"items\": ["); err != nil {
		return err
	}
	err := inorder.Do(len(objs), func(i int) ([]byte, error) {
		data, err := objs[i].JSON()
		if err != nil {
			return nil, err
		}
		b := make([]byte, 0, 2*len(data)+64)
		if i > 0 {
			b = append(b, ',')
		}
		return breakLines(append(b, "\n    "...), data, 4, everywhere), nil
	}, func(b []byte) error {
		_, err := w.Write(b)
		return err
	})
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, "\n  ]\n}\n")
	return err
}
