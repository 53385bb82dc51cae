// Package fetch brings what a topology names by URL: the topology itself, its
// startup-configs and licences, and Git repositories.
package fetch

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"
)

// MaxSize is the most that one URL may hold, in bytes.
const MaxSize = 64 << 20

// HTTP gets the body of an http or https URL. It fails for any status but 200,
// for a body of more than MaxSize bytes, and after 60 seconds.
func HTTP(ctx context.Context, url string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("GET %s: %s", url, resp.Status)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, MaxSize+1))
	if err != nil {
		return nil, fmt.Errorf("GET %s: %w", url, err)
	}
	if len(body) > MaxSize {
		return nil, fmt.Errorf("GET %s: more than %d bytes", url, MaxSize)
	}
	return body, nil
}
