package door

import (
	"context"
	"net"
	"net/http"
)

type guestKey struct{}

// Context is an http.Server's ConnContext: requests then know their guest.
func Context(ctx context.Context, c net.Conn) context.Context {
	if g, ok := c.(*Guest); ok {
		return context.WithValue(ctx, guestKey{}, g)
	}
	return ctx
}

// Of returns the guest that a request is of, nil where it came through no door.
func Of(r *http.Request) *Guest {
	g, _ := r.Context().Value(guestKey{}).(*Guest)
	return g
}

// Hold reports whether a request may take time, as Guest.Hold does. A request without a
// Door may.
func Hold(r *http.Request) (release func(), ok bool) {
	if g := Of(r); g != nil {
		return g.Hold()
	}
	return func() {}, true
}

// Bounded answers 503 where there are too many requests that take time.
func Bounded(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		release, ok := Hold(r)
		if !ok {
			w.Header().Set("Retry-After", "1")
			http.Error(w, "too many requests of this source are under way", http.StatusServiceUnavailable)
			return
		}
		defer release()
		next(w, r)
	}
}

// Routes answers GET and HEAD for exact paths. Unlike http.ServeMux, it never redirects.
type Routes map[string]http.HandlerFunc

func (rt Routes) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := rt[r.URL.Path]
	switch {
	case h == nil:
		http.Error(w, "no such path", http.StatusNotFound)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "only GET is answered", http.StatusMethodNotAllowed)
	default:
		h(w, r)
	}
}
