package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/c9s-lab/c9s/internal/foreign"
	"github.com/c9s-lab/c9s/pkg/contract"
)

// Fetch asks the sidecar at an address for its status.
func Fetch(ctx context.Context, client *http.Client, at netip.Addr) (Status, error) {
	var s Status
	resp, err := get(ctx, client, at, PathStatus, nil)
	if err != nil {
		return s, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return s, fmt.Errorf("status of the sidecar at %s: it answers %s", at, resp.Status)
	}
	if err := read(resp.Body, &s); err != nil {
		return s, fmt.Errorf("status of the sidecar at %s: %w", at, err)
	}
	return s, nil
}

// FetchSocket asks the sidecar of this Pod by its socket.
func FetchSocket(ctx context.Context, path string) (Status, error) {
	return Fetch(ctx, SocketClient(path), netip.AddrFrom4([4]byte{127, 0, 0, 1}))
}

// SocketClient returns a client that reaches the sidecar by a socket, whatever the
// address asked.
func SocketClient(path string) *http.Client {
	return direct(&http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{
		DisableKeepAlives: true, MaxResponseHeaderBytes: 16 << 10,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", path)
		},
	}})
}

// Lives asks the sidecar at an address whether it works.
func Lives(ctx context.Context, client *http.Client, at netip.Addr) (bool, error) {
	resp, err := get(ctx, client, at, PathLive, nil)
	if err != nil {
		return false, err
	}
	resp.Body.Close()
	return resp.StatusCode == http.StatusOK, nil
}

// read decodes a status, or what is one perhaps.
func read(body io.Reader, into any) error {
	data, err := foreign.Read(body, foreign.MaxStatus)
	if err != nil {
		return err
	}
	return foreign.JSON(data, foreign.MaxElements, into)
}

// Over asks the sidecar at an address whether a stage of one of its nodes is over.
func Over(ctx context.Context, client *http.Client, at netip.Addr, w contract.WaitFor) (bool, error) {
	resp, err := get(ctx, client, at, PathStages, url.Values{"pod": {w.Pod}, "node": {w.Node}, "stage": {w.Stage}})
	if err != nil {
		return false, err
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusNoContent:
		return true, nil
	case http.StatusAccepted:
		return false, nil
	}
	return false, fmt.Errorf("stage %s of node %s: the sidecar at %s answers %s", w.Stage, w.Node, at, resp.Status)
}

// Login has the sidecar of this Pod, by its socket, log in to a node.
func Login(ctx context.Context, socket, id string) error {
	client := SocketClient(socket)
	client.Timeout = 0 // ctx has one
	resp, err := get(ctx, client, netip.AddrFrom4([4]byte{127, 0, 0, 1}), PathLogin, url.Values{"node": {id}})
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusNoContent {
		return nil
	}
	data, err := foreign.Read(resp.Body, foreign.MaxStatus)
	if err != nil {
		return err
	}
	return errors.New(strings.TrimSpace(string(data)))
}

// Turn tells the sidecar at an address that its devices may boot.
func Turn(ctx context.Context, client *http.Client, at netip.Addr) error {
	return boot(ctx, client, at, url.Values{QueryTurn: {"true"}})
}

// Ahead tells the sidecar at an address how many Pods boot before its own.
func Ahead(ctx context.Context, client *http.Client, at netip.Addr, pods int) error {
	return boot(ctx, client, at, url.Values{QueryAhead: {strconv.Itoa(pods)}})
}

func boot(ctx context.Context, client *http.Client, at netip.Addr, query url.Values) error {
	resp, err := get(ctx, client, at, PathBoot, query)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusNoContent {
		return fmt.Errorf("turn to boot: the sidecar at %s answers %s", at, resp.Status)
	}
	return nil
}

// Bridge asks the sidecar of this Pod, by its socket, for an object of a bridge node.
func Bridge(ctx context.Context, socket, node, object string) (string, error) {
	resp, err := get(ctx, SocketClient(socket), netip.AddrFrom4([4]byte{127, 0, 0, 1}), PathBridge, url.Values{"node": {node}, "object": {object}})
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	data, err := foreign.Read(resp.Body, foreign.MaxStatus)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = errors.New(strings.TrimSpace(string(data)))
	}
	return string(data), err
}

// Client returns a client for a sidecar: it takes no proxy and follows no redirect.
func Client() *http.Client {
	return direct(&http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true, MaxResponseHeaderBytes: 16 << 10}})
}

// direct is a client that goes to the sidecar and nowhere else: it follows no redirect
// and, by default, takes no proxy.
func direct(client *http.Client) *http.Client {
	if client == nil {
		return Client()
	}
	c := *client
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &c
}

func get(ctx context.Context, client *http.Client, at netip.Addr, path string, query url.Values) (*http.Response, error) {
	u := url.URL{Scheme: "http", Host: net.JoinHostPort(at.String(), strconv.Itoa(contract.StatusPort)), Path: path, RawQuery: query.Encode()}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	resp, err := direct(client).Do(req)
	if err != nil {
		return nil, fmt.Errorf("ask the sidecar at %s: %w", at, err)
	}
	return resp, nil
}
