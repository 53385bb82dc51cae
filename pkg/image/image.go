// Package image asks registries about images: their digest and configuration,
// never their layers. Nothing in c9s needs it unless the user asks.
package image

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/c9s-lab/c9s/internal/atomicfile"
	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
)

// Info is what a registry reports about an image (OCI image specification: manifest
// and config).
type Info struct {
	// Digest is that of the index, if there is one, else of the manifest.
	Digest string `json:"digest"`
	// Platforms are "linux/amd64" and so on; one for a plain manifest.
	Platforms  []string          `json:"platforms"`
	Entrypoint []string          `json:"entrypoint,omitempty"`
	Cmd        []string          `json:"cmd,omitempty"`
	User       string            `json:"user,omitempty"`
	Env        []string          `json:"env,omitempty"`
	Labels     map[string]string `json:"labels,omitempty"`
	// Healthcheck is Docker's, nil for none.
	Healthcheck *Healthcheck `json:"healthcheck,omitempty"`
}

// Healthcheck is the image's HEALTHCHECK.
type Healthcheck struct {
	Test        []string      `json:"test"`
	Interval    time.Duration `json:"interval,omitempty"`
	Timeout     time.Duration `json:"timeout,omitempty"`
	StartPeriod time.Duration `json:"startPeriod,omitempty"`
	Retries     int           `json:"retries,omitempty"`
}

// Resolver asks registries. The zero value uses the user's Docker credentials, no
// cache and no mirrors.
type Resolver struct {
	// Platform is "linux/amd64" by default; an image that does not have it is
	// an error.
	Platform string
	// CacheDir keeps answers for images that are named by digest, which cannot
	// change; "" keeps none.
	CacheDir string
	// Insecure are registry hosts that are reached by plain HTTP.
	Insecure []string
	// Mirrors maps a registry host to the one that is asked in its place.
	Mirrors map[string]string
	// Transport and Keychain override the defaults, for tests.
	Transport http.RoundTripper
	Keychain  authn.Keychain
}

// Bounds of what a registry answers for one image: a manifest and a configuration have
// some kilobytes.
const (
	maxAnswer = 16 << 20
	maxTime   = time.Minute
)

// Resolve asks for one image, for at most a minute. The error names the image and the cause: not found,
// not allowed, unreachable, or a platform that it does not have.
func (r *Resolver) Resolve(ctx context.Context, image string) (Info, error) {
	ctx, cancel := context.WithTimeout(ctx, maxTime)
	defer cancel()
	info, err := r.resolve(ctx, image)
	if err != nil {
		return Info{}, fmt.Errorf("image %s: %w", image, explain(err))
	}
	return info, nil
}

func (r *Resolver) resolve(ctx context.Context, image string) (Info, error) {
	ref, err := r.reference(image)
	if err != nil {
		return Info{}, err
	}
	if info, ok := r.cached(ref); ok {
		return info, nil
	}
	platform, err := v1.ParsePlatform(r.platform())
	if err != nil {
		return Info{}, err
	}
	options := []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(r.keychain()), remote.WithPlatform(*platform)}
	below := r.Transport
	if below == nil {
		below = remote.DefaultTransport
	}
	options = append(options, remote.WithTransport(&limited{below: below}))
	desc, err := remote.Get(ref, options...)
	if err != nil {
		return Info{}, err
	}
	info := Info{Digest: desc.Digest.String()}
	if desc.MediaType.IsIndex() {
		if info.Platforms, err = platforms(desc); err != nil {
			return Info{}, err
		}
		if !slices.Contains(info.Platforms, r.platform()) {
			return Info{}, fmt.Errorf("it has no image for %s (only %s)", r.platform(), strings.Join(info.Platforms, ", "))
		}
	}
	img, err := desc.Image()
	if err != nil {
		return Info{}, err
	}
	raw, err := img.RawConfigFile()
	if err != nil {
		return Info{}, err
	}
	if err := info.fill(raw); err != nil {
		return Info{}, err
	}
	if info.Platforms[0] != r.platform() && !desc.MediaType.IsIndex() {
		return Info{}, fmt.Errorf("it is for %s, not %s", info.Platforms[0], r.platform())
	}
	return info, r.keep(ref, info)
}

func (r *Resolver) platform() string {
	if r.Platform == "" {
		return "linux/amd64"
	}
	return r.Platform
}

func (r *Resolver) keychain() authn.Keychain {
	if r.Keychain == nil {
		return authn.DefaultKeychain
	}
	return r.Keychain
}

// reference reads an image name, and puts the mirror in the registry's place.
func (r *Resolver) reference(image string) (name.Reference, error) {
	ref, err := name.ParseReference(image)
	if err != nil {
		return nil, err
	}
	host := ref.Context().RegistryStr()
	if mirror, ok := r.Mirrors[host]; ok {
		host = mirror
	}
	var options []name.Option
	if slices.Contains(r.Insecure, host) {
		options = append(options, name.Insecure)
	}
	separator := ":"
	if _, digest := ref.(name.Digest); digest {
		separator = "@"
	}
	return name.ParseReference(host+"/"+ref.Context().RepositoryStr()+separator+ref.Identifier(), options...)
}

func platforms(desc *remote.Descriptor) ([]string, error) {
	index, err := desc.ImageIndex()
	if err != nil {
		return nil, err
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	var out []string
	for _, m := range manifest.Manifests {
		if m.Platform != nil && m.Platform.OS != "unknown" {
			out = append(out, m.Platform.OS+"/"+m.Platform.Architecture)
		}
	}
	return out, nil
}

// fill reads an image configuration. Docker's Healthcheck is beyond the OCI
// specification, so it is read from the raw JSON.
func (i *Info) fill(raw []byte) error {
	var config struct {
		OS           string `json:"os"`
		Architecture string `json:"architecture"`
		Config       struct {
			Entrypoint, Cmd, Env []string
			User                 string
			Labels               map[string]string
			Healthcheck          *Healthcheck
		} `json:"config"`
	}
	if err := json.Unmarshal(raw, &config); err != nil {
		return fmt.Errorf("reading its configuration: %w", err)
	}
	c := config.Config
	i.Entrypoint, i.Cmd, i.Env, i.User, i.Labels, i.Healthcheck = c.Entrypoint, c.Cmd, c.Env, c.User, c.Labels, c.Healthcheck
	if len(i.Platforms) == 0 {
		i.Platforms = []string{config.OS + "/" + config.Architecture}
	}
	return nil
}

// cacheFile is where the answer for an image by digest is kept.
func (r *Resolver) cacheFile(ref name.Reference) string {
	if _, ok := ref.(name.Digest); !ok || r.CacheDir == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(ref.Name() + " " + r.platform()))
	return filepath.Join(r.CacheDir, hex.EncodeToString(sum[:])+".json")
}

func (r *Resolver) cached(ref name.Reference) (Info, bool) {
	file := r.cacheFile(ref)
	if file == "" {
		return Info{}, false
	}
	var info Info
	data, err := os.ReadFile(file)
	if err != nil || json.Unmarshal(data, &info) != nil || info.Digest == "" {
		return Info{}, false
	}
	return info, true
}

func (r *Resolver) keep(ref name.Reference, info Info) error {
	file := r.cacheFile(ref)
	if file == "" {
		return nil
	}
	data, err := json.Marshal(info)
	if err != nil {
		return err
	}
	return atomicfile.Write(file, data, 0o600, 0o700)
}

// explain puts a registry's error into a user's words.
func explain(err error) error {
	var te *transport.Error
	if !errors.As(err, &te) {
		return err
	}
	switch te.StatusCode {
	case http.StatusNotFound:
		return errors.New("the registry does not have it; check the name and tag")
	case http.StatusUnauthorized, http.StatusForbidden:
		return errors.New("the registry denies access; log in (docker login) or check the name")
	}
	return err
}

// Pin is the reference with its digest in place of its tag.
func Pin(image, digest string) (string, error) {
	ref, err := name.ParseReference(image)
	if err != nil {
		return "", fmt.Errorf("image %s: %w", image, err)
	}
	repository := image
	if i := strings.Index(repository, "@"); i >= 0 {
		repository = repository[:i]
	} else if tag, ok := ref.(name.Tag); ok {
		repository = strings.TrimSuffix(repository, ":"+tag.TagStr())
	}
	return repository + "@" + digest, nil
}
