package save

import (
	"bufio"
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/c9s-lab/c9s/pkg/plan/kinds"
)

// NETCONF over SSH (RFC 6241, RFC 6242).
const (
	netconfBase = "urn:ietf:params:xml:ns:netconf:base:1.0"
	base10      = "urn:ietf:params:netconf:base:1.0"
	base11      = "urn:ietf:params:netconf:base:1.1"
	// endOfMessage ends the messages of version 1.0, and both hellos.
	endOfMessage = "]]>]]>"
)

// overNETCONF copies the running configuration, or gets one; without Get, the result is nil.
func overNETCONF(ctx context.Context, rule *kinds.SaveNETCONF, d Device) ([]byte, error) {
	client, err := d.ssh(ctx, rule.Port, netconfPort)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	defer context.AfterFunc(ctx, func() { client.Close() })()
	session, err := client.NewSession()
	if err != nil {
		return nil, err
	}
	defer session.Close()
	in, err := session.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := session.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := session.RequestSubsystem("netconf"); err != nil {
		return nil, errors.New("the device does not speak NETCONF at this port")
	}
	n := &netconf{in: in, out: bufio.NewReader(out)}
	config, err := n.save(rule)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, fmt.Errorf("NETCONF: %w", err)
	}
	return config, nil
}

// netconf is one session.
type netconf struct {
	in  io.Writer
	out *bufio.Reader
	// chunked is set for the framing of version 1.1.
	chunked bool
	id      int
}

func (n *netconf) save(rule *kinds.SaveNETCONF) (config []byte, err error) {
	if err := n.hello(); err != nil {
		return nil, err
	}
	if rule.Copy != "" {
		if _, err := n.call("<copy-config><target><" + rule.Copy + "/></target><source><running/></source></copy-config>"); err != nil {
			return nil, fmt.Errorf("copy-config: %w", err)
		}
	}
	if rule.Get != "" {
		if config, err = n.call("<get-config><source><" + rule.Get + "/></source></get-config>"); err != nil {
			return nil, fmt.Errorf("get-config: %w", err)
		}
	}
	_, _ = n.call("<close-session/>")
	return config, nil
}

// hello exchanges the capabilities.
func (n *netconf) hello() error {
	message := xml.Header + `<hello xmlns="` + netconfBase + `"><capabilities><capability>` + base10 + `</capability><capability>` + base11 + `</capability></capabilities></hello>`
	if err := n.write(message); err != nil {
		return err
	}
	text, err := n.read()
	if err != nil {
		return fmt.Errorf("waiting for the hello: %w", err)
	}
	var hello struct {
		XMLName      xml.Name `xml:"hello"`
		Capabilities []string `xml:"capabilities>capability"`
	}
	if err := xml.Unmarshal(text, &hello); err != nil {
		return fmt.Errorf("the hello: %w", err)
	}
	for _, c := range hello.Capabilities {
		n.chunked = n.chunked || strings.TrimSpace(c) == base11
	}
	return nil
}

// call sends a request and returns the contents of data in the reply.
func (n *netconf) call(body string) ([]byte, error) {
	n.id++
	if err := n.write(fmt.Sprintf(`%s<rpc xmlns="%s" message-id="%d">%s</rpc>`, xml.Header, netconfBase, n.id, body)); err != nil {
		return nil, err
	}
	for {
		text, err := n.read()
		if err != nil {
			return nil, err
		}
		var reply struct {
			XMLName xml.Name
			ID      string `xml:"message-id,attr"`
			Errors  []struct {
				Severity string `xml:"error-severity"`
				Tag      string `xml:"error-tag"`
				Message  string `xml:"error-message"`
			} `xml:"rpc-error"`
			Data struct {
				Inner []byte `xml:",innerxml"`
			} `xml:"data"`
		}
		if err := xml.Unmarshal(text, &reply); err != nil {
			return nil, fmt.Errorf("the reply: %w", err)
		}
		if reply.XMLName.Local != "rpc-reply" || reply.ID != "" && reply.ID != strconv.Itoa(n.id) {
			continue // a notification
		}
		for _, e := range reply.Errors {
			if strings.TrimSpace(e.Severity) != "warning" {
				return nil, fmt.Errorf("the device reports %s: %s", strings.TrimSpace(e.Tag), strings.Join(strings.Fields(e.Message), " "))
			}
		}
		return reply.Data.Inner, nil
	}
}

func (n *netconf) write(message string) error {
	if n.chunked {
		message = fmt.Sprintf("\n#%d\n%s\n##\n", len(message), message)
	} else {
		message += endOfMessage
	}
	_, err := io.WriteString(n.in, message)
	return err
}

// read returns one message.
func (n *netconf) read() ([]byte, error) {
	var out bytes.Buffer
	if !n.chunked {
		for !bytes.HasSuffix(out.Bytes(), []byte(endOfMessage)) {
			b, err := n.out.ReadByte()
			if err != nil {
				return nil, err
			}
			out.WriteByte(b)
			if out.Len() > maxConfig {
				return nil, fmt.Errorf("a message has more than %d bytes", maxConfig)
			}
		}
		return bytes.TrimSuffix(out.Bytes(), []byte(endOfMessage)), nil
	}
	for {
		size, err := n.chunk()
		if err != nil || size == 0 {
			return out.Bytes(), err
		}
		if out.Len()+size > maxConfig {
			return nil, fmt.Errorf("a message has more than %d bytes", maxConfig)
		}
		if _, err := io.CopyN(&out, n.out, int64(size)); err != nil {
			return nil, err
		}
	}
}

// chunk reads the header of a chunk, and returns 0 for the end of the message.
func (n *netconf) chunk() (int, error) {
	for range 4 { // a line break, and whatever a device adds before it
		data, err := n.out.ReadSlice('\n') // a device that sends no line break fills the buffer
		if err != nil {
			return 0, err
		}
		line := strings.TrimSpace(string(data))
		if line == "" {
			continue
		}
		digits, ok := strings.CutPrefix(line, "#")
		if !ok {
			return 0, fmt.Errorf("%.40q is not the beginning of a chunk", line)
		}
		if digits == "#" {
			return 0, nil
		}
		size, err := strconv.ParseUint(digits, 10, 31)
		if err != nil || size == 0 {
			return 0, fmt.Errorf("%.40q is not the size of a chunk", line)
		}
		return int(size), nil
	}
	return 0, errors.New("there is no chunk")
}
