package api

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"time"
)

// silence is how long a held answer may say nothing: two beats are missed.
const silence = 3 * BeatStatus

// mostBeats are more than a held answer has.
const mostBeats = 4 * int(HoldStatus/BeatStatus)

// Follow asks the sidecar at an address for a status with another tag. It calls alive
// whenever the sidecar says that it has none yet, and returns changed as false where
// there was none in the end. A sidecar that knows no tags answers at once.
func Follow(ctx context.Context, client *http.Client, at netip.Addr, tag string, alive func()) (s Status, changed bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	watchdog := time.AfterFunc(silence, cancel)
	defer watchdog.Stop()
	resp, err := get(ctx, client, at, PathStatus, url.Values{QuerySince: {tag}})
	if err != nil {
		return s, false, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return s, false, fmt.Errorf("status of the sidecar at %s: it answers %s", at, resp.Status)
	}
	body := bufio.NewReader(resp.Body)
	for beats := 0; ; beats++ {
		if beats > mostBeats {
			return s, false, fmt.Errorf("status of the sidecar at %s: it says nothing again and again", at)
		}
		b, err := body.ReadByte()
		if err != nil {
			return s, false, fmt.Errorf("status of the sidecar at %s: %w", at, err)
		}
		watchdog.Reset(silence)
		if b == ' ' {
			alive()
			continue
		}
		if err := body.UnreadByte(); err != nil {
			return s, false, err
		}
		break
	}
	var answer *Status
	if err := read(body, &answer); err != nil {
		return s, false, fmt.Errorf("status of the sidecar at %s: %w", at, err)
	}
	if answer == nil {
		return s, false, nil
	}
	return *answer, true, nil
}
