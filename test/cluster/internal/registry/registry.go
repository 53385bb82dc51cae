// Package registry serves images to a cluster: whatever host a reference names,
// containerd asks here, and the answer comes from the OCI layouts of a folder.
package registry

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// NameAnnotation is where an OCI layout keeps the full reference of an image.
const NameAnnotation = "org.opencontainers.image.ref.name"

// A Registry answers pulls. It reads its folder on every request, so that an
// image is there as soon as its layout is.
type Registry struct {
	Dir string // each entry an OCI layout, or a link to one
}

// Serve answers until the listener fails.
func (r Registry) Serve(l net.Listener) error {
	server := &http.Server{Handler: r, ReadHeaderTimeout: 10 * time.Second}
	return server.Serve(l)
}

var (
	manifestPath = regexp.MustCompile(`^/v2/(.+)/manifests/([^/]+)$`)
	blobPath     = regexp.MustCompile(`^/v2/.+/blobs/sha256:([0-9a-f]{64})$`)
)

func (r Registry) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if req.Method != http.MethodGet && req.Method != http.MethodHead {
		http.Error(w, "this registry is read-only", http.StatusMethodNotAllowed)
		return
	}
	if m := manifestPath.FindStringSubmatch(req.URL.Path); m != nil {
		r.serveManifest(w, req, m[1], m[2])
		return
	}
	if m := blobPath.FindStringSubmatch(req.URL.Path); m != nil {
		r.serveBlob(w, req, m[1])
		return
	}
	if req.URL.Path == "/v2/" {
		return
	}
	http.NotFound(w, req)
}

// serveManifest answers for repository:tag or repository@digest; containerd says
// the host of the reference as ns.
func (r Registry) serveManifest(w http.ResponseWriter, req *http.Request, repository, tag string) {
	digest, isDigest := strings.CutPrefix(tag, "sha256:")
	mediaType := ""
	if !isDigest {
		reference := fullReference(req.URL.Query().Get("ns"), repository, tag)
		d, err := r.resolve(reference)
		if err != nil {
			fmt.Printf("%s: %v\n", reference, err)
			replyUnknown(w, reference)
			return
		}
		digest, mediaType = strings.TrimPrefix(d.Digest, "sha256:"), d.MediaType
	}
	path, err := r.blob(digest)
	if err != nil {
		replyUnknown(w, tag)
		return
	}
	if mediaType == "" {
		mediaType = mediaTypeOf(path)
	}
	w.Header().Set("Content-Type", mediaType)
	w.Header().Set("Docker-Content-Digest", "sha256:"+digest)
	http.ServeFile(w, req, path)
}

func (r Registry) serveBlob(w http.ResponseWriter, req *http.Request, digest string) {
	path, err := r.blob(digest)
	if err != nil {
		http.NotFound(w, req)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Docker-Content-Digest", "sha256:"+digest)
	http.ServeFile(w, req, path)
}

// blob finds a blob in any layout.
func (r Registry) blob(digest string) (string, error) {
	found, err := filepath.Glob(filepath.Join(r.Dir, "*", "blobs", "sha256", digest))
	if err != nil || len(found) == 0 {
		return "", os.ErrNotExist
	}
	return found[0], nil
}

func mediaTypeOf(path string) string {
	var manifest struct {
		MediaType string `json:"mediaType"`
	}
	text, err := os.ReadFile(path)
	if err != nil || json.Unmarshal(text, &manifest) != nil || manifest.MediaType == "" {
		return "application/vnd.oci.image.manifest.v1+json"
	}
	return manifest.MediaType
}

func replyUnknown(w http.ResponseWriter, reference string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusNotFound)
	_ = json.NewEncoder(w).Encode(map[string]any{"errors": []map[string]string{{
		"code":    "MANIFEST_UNKNOWN",
		"message": "no image " + reference + " was loaded: `c9s-cluster load` brings one in",
	}}})
}
