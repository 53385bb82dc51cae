// Package browser looks at c9s' pages in a real browser, Chromium without a window.
package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/c9s-lab/c9s/pkg/graph/live"
)

// patience is how long a test waits for what must come.
const patience = 30 * time.Second

// chromium returns the path of the browser. A machine without one has not run these tests, so
// they fail there.
func chromium(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Fatal("Chromium is not installed: apt-get install chromium-headless-shell")
	return ""
}

// tab is a page in a browser of its own.
type tab struct {
	*testing.T
	ctx context.Context
}

// inGroup has the browser end with its test: Debian's program is a shell script, and its end is not
// that of the browser.
func inGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}

// open opens a URL. dark is what the user's system prefers.
func open(t *testing.T, url string, dark bool, flags ...chromedp.ExecAllocatorOption) *tab {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(chromium(t)), chromedp.NoSandbox, chromedp.WindowSize(1360, 850), chromedp.ModifyCmdFunc(inGroup))
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), append(options, flags...)...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	ctx, cancel = context.WithTimeout(ctx, 3*time.Minute)
	t.Cleanup(cancel)
	b := &tab{t, ctx}
	chromedp.ListenTarget(ctx, func(e any) {
		switch e := e.(type) {
		case *runtime.EventExceptionThrown:
			t.Errorf("the page fails: %s", e.ExceptionDetails.Error())
		case *runtime.EventConsoleAPICalled:
			if e.Type == runtime.APITypeError {
				t.Errorf("the page complains: %s", text(e.Args))
			}
		}
	})
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	b.run(emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"},
	}), chromedp.Navigate(url))
	return b
}

func (b *tab) run(actions ...chromedp.Action) {
	b.Helper()
	if err := chromedp.Run(b.ctx, actions...); err != nil {
		b.Fatal(err)
	}
}

// eval runs JavaScript in the page and reads its value.
func eval[T any](b *tab, script string) (value T) {
	b.Helper()
	b.run(chromedp.Evaluate(script, &value, func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }))
	return value
}

// until waits until JavaScript returns true.
func (b *tab) until(script string) {
	b.Helper()
	end := time.Now().Add(patience)
	for !eval[bool](b, "Boolean("+script+")") {
		if time.Now().After(end) {
			b.shoot("failed")
			b.Fatalf("this does not come true: %s\nthe page says: %s", script, eval[string](b, "document.body.innerText"))
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// press presses keys, one after the other.
func (b *tab) press(keys ...string) {
	b.Helper()
	for _, key := range keys {
		b.run(chromedp.KeyEvent(key))
	}
}

// click clicks with the mouse at the middle of an element.
func (b *tab) click(selector string) {
	b.Helper()
	var at struct{ X, Y float64 }
	b.run(chromedp.Evaluate(fmt.Sprintf(`(() => {
		const e = document.querySelector(%q);
		e.scrollIntoView({block: "nearest", inline: "nearest"});
		const r = e.getBoundingClientRect();
		return {X: r.x + r.width / 2, Y: r.y + r.height / 2};
	})()`, selector), &at))
	b.run(chromedp.MouseClickXY(at.X, at.Y))
}

// shoot saves a picture of the page, where somebody wants to look at them.
func (b *tab) shoot(name string) {
	dir := os.Getenv("C9S_SCREENSHOTS")
	if dir == "" {
		return
	}
	var png []byte
	b.run(chromedp.CaptureScreenshot(&png))
	if err := os.WriteFile(filepath.Join(dir, strings.ReplaceAll(b.Name(), "/", "-")+"-"+name+".png"), png, 0o644); err != nil {
		b.Error(err)
	}
}

// serve serves a page as c9s graph --live does.
func serve(t *testing.T, page *live.Page) string {
	t.Helper()
	server := httptest.NewServer(page.Handler())
	t.Cleanup(func() {
		server.CloseClientConnections() // streams of events do not end by themselves
		server.Close()
	})
	return server.URL + "/"
}

// node is the selector of a node's box, by its name.
func node(name string) string { return fmt.Sprintf(`.box.node[aria-label^=%q]`, name+",") }

// overlaps returns labels that overlap each other or a box, and the number of labels and boxes
// that were compared.
func (b *tab) overlaps() (found []string, labels, boxes int) {
	b.Helper()
	var out struct {
		Found         []string
		Labels, Boxes int
	}
	b.run(chromedp.Evaluate(overlapScript, &out))
	return out.Found, out.Labels, out.Boxes
}

// overlapScript asks for the boxes of what is drawn, as the browser has them.
const overlapScript = `(() => {
	const rect = (e, what) => { const r = e.getBoundingClientRect(); return {what, l: r.left, t: r.top, r: r.right, b: r.bottom}; };
	const labels = [...document.querySelectorAll("#labels text")].map(e => rect(e, "label " + e.textContent));
	const boxes = [...document.querySelectorAll(".box")].map(e => rect(e.querySelector(".front"), "box " + e.getAttribute("aria-label")));
	const Found = [];
	const all = [...labels, ...boxes].sort((a, b) => a.l - b.l);
	for (let i = 0; i < all.length; i++) {
		for (let j = i + 1; j < all.length && all[j].l < all[i].r; j++) {
			const a = all[i], b = all[j];
			if (a.l + .5 < b.r && b.l + .5 < a.r && a.t + .5 < b.b && b.t + .5 < a.b) Found.push(a.what + " / " + b.what);
		}
	}
	for (const e of document.querySelectorAll(".box")) {
		const outer = e.querySelector(".front").getBoundingClientRect();
		for (const text of e.querySelectorAll("text")) {
			const r = text.getBoundingClientRect();
			if (text.textContent && (r.left < outer.left || r.right > outer.right || r.top < outer.top || r.bottom > outer.bottom)) Found.push(text.textContent + " leaves its box");
		}
		const [name, note] = [...e.querySelectorAll("text")].map(t => t.getBoundingClientRect());
		if (note.height && name.bottom > note.bottom) Found.push("the texts of " + e.getAttribute("aria-label"));
	}
	return {Found, Labels: labels.length, Boxes: boxes.length};
})()`

// checkOverlaps waits until so many labels are drawn, which takes a frame after a click, and
// checks that none covers another one or a box.
func (b *tab) checkOverlaps(least int) {
	b.Helper()
	b.until(fmt.Sprintf(`document.querySelectorAll("#labels text").length >= %d`, least))
	found, labels, boxes := b.overlaps()
	if len(found) > 0 {
		b.shoot("overlap")
		b.Errorf("%d overlaps, the first: %s", len(found), found[0])
	}
	if labels < least || boxes == 0 {
		b.Errorf("%d labels of %d boxes, want at least %d", labels, boxes, least)
	}
	b.Logf("%d labels, %d boxes", labels, boxes)
}

// focused returns the accessible name of what has the keyboard.
func (b *tab) focused() string {
	b.Helper()
	return eval[string](b, `document.activeElement.getAttribute("aria-label") || document.activeElement.id || document.activeElement.textContent`)
}

func text(v any) string {
	data, _ := json.Marshal(v)
	return string(data)
}

const (
	left, right, up, down = kb.ArrowLeft, kb.ArrowRight, kb.ArrowUp, kb.ArrowDown
	tabKey, enter, escape = kb.Tab, kb.Enter, kb.Escape
)
