package browser

import (
	"context"
	"fmt"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"

	"github.com/c9s-lab/c9s/pkg/graph"
	"github.com/c9s-lab/c9s/pkg/graph/live"
	"github.com/c9s-lab/c9s/pkg/status"
)

const detailsText = `document.getElementById("details").innerText`

// A click on a node or a link shows its details, with the commands for it.
func TestClicks(t *testing.T) {
	b := open(t, serve(t, live.NewPage(small().graph())), false)
	b.until(`document.querySelectorAll(".box").length === 11`)
	b.until(`document.getElementById("connection").textContent === "live"`)
	b.shoot("whole")
	b.click(node("leaf2"))
	for _, want := range []string{"leaf2", "degraded", "its link to spine2 is down", "worker-1", "c9s ssh leaf2 --lab small", "spine2:eth2 – leaf2:eth2 (down)"} {
		b.until(fmt.Sprintf(`%s.includes(%q)`, detailsText, want))
	}
	b.shoot("node")
	if eval[int](b, `document.querySelectorAll("#drawing.focus .box.lit").length`) != 4 {
		t.Error("leaf2 and its three neighbours are not brought out")
	}
	b.click(node("leaf2"))
	b.until(`document.getElementById("details").hidden`)
	// The middle of a link is on its line.
	b.click(`[data-line="l6"] .hit`)
	for _, want := range []string{"spine1:eth4 – leaf4:eth1", "vxlan", "0.21 ms", "c9s capture --link spine1:eth4 leaf4:eth1"} {
		b.until(fmt.Sprintf(`%s.includes(%q)`, detailsText, want))
	}
	b.shoot("link")
	b.click(`#details li button`) // one of its ends
	b.until(`document.querySelector("#details h2").textContent === "spine1"`)
	b.click(`#details button[aria-label="Close details"]`)
	b.until(`document.getElementById("details").hidden`)
}

// The page follows the lab: states, rates, new nodes, and the loss of the connection.
func TestUpdates(t *testing.T) {
	l := small()
	page := live.NewPage(l.graph())
	server := httptest.NewServer(page.Handler())
	defer server.Close()
	defer server.CloseClientConnections()
	b := open(t, server.URL, false)
	b.until(`document.getElementById("connection").textContent === "live"`)
	b.until(`document.querySelector('[data-line="l7"]')?.classList.contains("good")`)
	b.click(node("leaf3"))
	l.Nodes[4].State, l.Nodes[4].Reason = status.StateFailed, "it needed more memory than its limit"
	l.Links[7].State, l.Links[7].Up = status.LinkDown, false
	l.State = status.LabFailed
	page.Set(l.graph())
	b.until(`document.querySelector('.box[aria-label^="leaf3,"]')?.classList.contains("bad")`)
	b.until(`document.querySelector('[data-line="l7"]')?.classList.contains("bad")`)
	b.until(detailsText + `.includes("more memory than its limit")`)
	b.until(`document.getElementById("state").textContent === "failed"`)
	b.click(node("leaf3"))
	b.run(chromedp.MouseEvent(input.MouseMoved, 5, 5)) // what the mouse is at hides other labels
	l.rate(6, 9.6e9, 0)
	page.Set(l.graph())
	b.until(`[...document.querySelectorAll("#labels text")].some(e => e.textContent === "9.6 Gbit/s")`)
	b.checkOverlaps(20)
	l.node("leaf5", "2", status.StatePulling)
	l.link("spine1", "leaf5")
	page.Set(l.graph())
	b.until(`document.querySelector('.box[aria-label^="leaf5,"]')?.classList.contains("busy")`)
	page.Trouble("the API server does not answer")
	b.until(`document.querySelector("#connection.lost")?.textContent === "the API server does not answer"`)
	page.Set(l.graph())
	b.until(`document.querySelector("#connection:not(.lost)")?.textContent === "live"`)
	server.CloseClientConnections()
	server.Listener.Close()
	b.until(`document.querySelector("#connection.lost")?.textContent.startsWith("connection lost")`)
}

// contrastScript returns the least contrast (WCAG 2) of the texts of boxes, header and details.
const contrastScript = `(() => {
	const parse = c => c.match(/[\d.]+/g).map(Number);
	const light = c => { const [r, g, b] = parse(c).map(v => v / 255).map(v => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4); return .2126 * r + .7152 * g + .0722 * b; };
	const contrast = (a, b) => { const [x, y] = [light(a), light(b)].sort((p, q) => q - p); return (x + .05) / (y + .05); };
	const behind = e => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor; if (parse(c)[3] !== 0) return c; } };
	const list = [...document.querySelectorAll(".box")].flatMap(g => [...g.querySelectorAll("text")].map(e => [e, getComputedStyle(e).fill, getComputedStyle(g.querySelector(".front")).fill]));
	for (const e of document.querySelectorAll("h1, #summary, #legend li, #details dt, #details dd, #details code, .pill, button, #labels text"))
		list.push([e, e.closest("svg") ? getComputedStyle(e).fill : getComputedStyle(e).color, behind(e)]);
	return list.filter(([e]) => e.textContent).map(([e, a, b]) => [contrast(a, b), e.textContent, a, b]).sort((a, b) => a[0] - b[0])[0];
})()`

// Colours follow the system's preference, and texts can be read in both.
func TestDark(t *testing.T) {
	url := serve(t, live.NewPage(small().graph()))
	backgrounds := map[string]bool{}
	for name, dark := range map[string]bool{"light": false, "dark": true} {
		b := open(t, url, dark)
		for _, by := range []string{"state", "kind", "worker"} {
			b.run(chromedp.SetValue("#nodes-by", by), chromedp.Evaluate(`document.getElementById("nodes-by").dispatchEvent(new Event("change"))`, nil))
			b.click(node("leaf2"))
			b.until(`!document.getElementById("details").hidden`)
			b.click(node("leaf2"))
			b.click(node("leaf1"))
			if worst := eval[[]any](b, contrastScript); worst[0].(float64) < 4.5 {
				t.Errorf("%s by %s: %v has a contrast of %.1f (%v on %v)", name, by, worst[1], worst[0], worst[2], worst[3])
			}
			b.shoot(name + "-" + by)
			b.click(node("leaf1"))
		}
		backgrounds[eval[string](b, `getComputedStyle(document.body).backgroundColor`)] = true
	}
	if len(backgrounds) != 2 {
		t.Errorf("light and dark have one background: %v", backgrounds)
	}
}

// Everything works by the keyboard, and has a name for a screen reader.
func TestKeyboard(t *testing.T) {
	b := open(t, serve(t, live.NewPage(small().graph())), false)
	b.until(`document.querySelectorAll(".box").length === 11`)
	for range 20 {
		b.press(tabKey)
		if strings.HasPrefix(b.focused(), "spine1,") {
			break
		}
	}
	step := func(key, want string) {
		t.Helper()
		b.press(key)
		if got := b.focused(); !strings.HasPrefix(got, want) {
			t.Fatalf("the keyboard is at %q, want %q", got, want)
		}
	}
	step(right, "spine2, kind nokia_srlinux, ready, on worker worker-2")
	step(left, "spine1,")
	step(left, "spine1,") // the end
	step(down, "leaf")
	first := b.focused()
	step(up, "spine")
	step(down, strings.SplitN(first, ",", 2)[0]+",")
	b.shoot("focus")
	b.press(enter)
	b.until(`!document.getElementById("details").hidden`)
	if got := b.focused(); got != first {
		t.Errorf("Enter moved the keyboard to %q", got)
	}
	step(tabKey, "Close details")
	step(tabKey, "Copy: Log in")
	step(tabKey, "Copy: Shell")
	b.press(tabKey, enter) // the first link of the node
	b.until(`document.querySelector("#details h2").textContent.includes(" – ")`)
	b.press(escape)
	b.until(`document.getElementById("details").hidden`)
	if got := b.focused(); got != first {
		t.Errorf("Escape left the keyboard at %q, not in the drawing", got)
	}
	for _, n := range b.controls() {
		if n.name == "" {
			t.Errorf("a %s has no accessible name", n.role)
		}
	}
}

type control struct{ role, name string }

// controls returns what the accessibility tree has that a user can act on.
func (b *tab) controls() (out []control) {
	b.Helper()
	b.run(chromedp.ActionFunc(func(ctx context.Context) error {
		nodes, err := accessibility.GetFullAXTree().Do(ctx)
		for _, n := range nodes {
			if n.Ignored || n.Role == nil {
				continue
			}
			c := control{role: strings.Trim(string(n.Role.Value), `"`)}
			if n.Name != nil {
				c.name = strings.Trim(string(n.Name.Value), `"`)
			}
			switch c.role {
			case "button", "combobox", "searchbox", "listbox", "textbox", "heading":
				out = append(out, c)
			}
		}
		return err
	}))
	if len(out) < 15 {
		b.Errorf("the accessibility tree has %v only", out)
	}
	return out
}

// No label covers another one, or a box.
func TestLabels(t *testing.T) {
	for name, c := range map[string]struct {
		lab   *lab
		least int
	}{"small": {small(), 28}, "mesh": {mesh(16), 20}, "chain": {chain(30), 55}, "large": {large(), 2}} {
		t.Run(name, func(t *testing.T) {
			b := open(t, serve(t, live.NewPage(c.lab.graph())), false)
			b.until(`document.querySelectorAll(".box").length > 0`)
			b.shoot("labels")
			b.checkOverlaps(c.least)
			// Those of one node have more room, but not in a large lab that has just been unfolded.
			b.click(".box.node, .box")
			b.checkOverlaps(map[bool]int{true: 0, false: 1}[name == "large"])
			b.shoot("one")
		})
	}
}

// A lab of 1,000 nodes is folded to a few boxes, and every node can be found and seen.
func TestThousandNodes(t *testing.T) {
	l := large()
	page := live.NewPage(l.graph())
	began := time.Now()
	b := open(t, serve(t, page), false)
	b.until(`document.getElementById("connection").textContent === "live"`)
	t.Logf("1,000 nodes, %d links: there after %s", len(l.Links), time.Since(began).Round(time.Millisecond))
	if n := eval[int](b, `document.querySelectorAll(".box").length`); n == 0 || n > 120 {
		t.Errorf("%d boxes of a folded lab", n)
	}
	b.until(`document.getElementById("summary").textContent === "999 of 1000 nodes ready, 1439 of 1440 links up"`)
	b.checkOverlaps(2)
	b.shoot("folded")
	if eval[string](b, `document.querySelector('.box.group[aria-label^="leaf,"]').getAttribute("aria-expanded")`) != "false" {
		t.Error("the leaves are not folded")
	}
	b.click(`.box.group[aria-label^="leaf,"]`)
	b.until(`document.querySelectorAll(".box.node").length >= 160`)
	b.until(`document.querySelector('.box.fold[aria-label^="leaf,"]').getAttribute("aria-expanded") === "true"`)
	b.shoot("unfolded")
	b.checkOverlaps(1)
	b.run(chromedp.SendKeys("#find", "host799\r"))
	b.until(`document.querySelector("#details h2").textContent === "host799"`)
	if got := b.focused(); !strings.HasPrefix(got, "host799,") {
		t.Errorf("the keyboard is at %q", got)
	}
	if !eval[bool](b, `(() => { const r = document.activeElement.getBoundingClientRect(), v = document.getElementById("view").getBoundingClientRect(); return r.top >= v.top - 1 && r.bottom <= v.bottom + 1; })()`) {
		t.Error("the node that was found is not in view")
	}
	b.shoot("found")
	b.press(escape)
	b.click("#unfold-all")
	b.until(`document.querySelectorAll(".box.node").length === 1000`)
	b.checkOverlaps(100)
	for i := range l.Nodes {
		l.Nodes[i].State = status.StateDegraded
	}
	for i := range l.Links {
		l.rate(i, 1e6, 1e6)
	}
	page.Set(l.graph())
	began = time.Now()
	b.until(`document.querySelectorAll(".box.warn").length >= 1000`)
	t.Logf("1,000 nodes and %d links changed at once: drawn after %s", len(l.Links), time.Since(began).Round(time.Millisecond))
	b.shoot("all")
	b.click("#fold-all")
	b.until(`document.querySelectorAll(".box.node").length === 0`)
	b.shoot("fold-all")
}

// A chain has no levels of many nodes, and folds nevertheless.
func TestLongChain(t *testing.T) {
	b := open(t, serve(t, live.NewPage(chain(1000).graph())), false)
	b.until(`document.querySelectorAll(".box").length > 0 && document.querySelectorAll(".box").length <= 120`)
	b.checkOverlaps(5)
	b.shoot("chain")
}

// The page as a file needs no server.
func TestFile(t *testing.T) {
	for name, g := range map[string]*graph.Graph{"running": small().graph(), "hostile": hostile()} {
		file := filepath.Join(t.TempDir(), "lab.html")
		var html strings.Builder
		if err := graph.HTML(&html, g); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(html.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		b := open(t, (&url.URL{Scheme: "file", Path: file}).String(), false)
		b.until(`document.querySelectorAll(".box").length > 0`)
		if got := eval[int](b, `performance.getEntriesByType("resource").filter(e => !e.name.startsWith("data:")).length`); got != 0 {
			t.Errorf("%s: the file loads %d other files", name, got)
		}
		b.click(".box")
		b.until(`!document.getElementById("details").hidden`)
		b.checkOverlaps(1)
		if eval[bool](b, `Boolean(window.broken) || document.querySelector("img") !== null`) {
			t.Errorf("%s: a name became markup", name)
		}
		b.shoot(name)
	}
}

// hostile is a topology whose names try to be more than text.
func hostile() *graph.Graph {
	d := graph.Draft{Name: `</title><script>window.broken=1</script>`}
	for _, name := range []string{`<img src=x onerror=window.broken=1>`, `</script><script>window.broken=1</script>`, `"><img src=x>`, "a\u2028b", `__proto__`} {
		d.Node(graph.Node{ID: name, Name: name, Kind: `<b>`}, nil)
	}
	d.Link(graph.End{Node: `"><img src=x>`, Interface: `"'><script>window.broken=1</script>`}, graph.End{Node: "__proto__", Interface: "eth1"}, "veth", nil)
	return d.Graph()
}

// A page of somebody else, whose name leads to this machine, reads nothing (DNS rebinding).
func TestRebinding(t *testing.T) {
	at, err := url.Parse(serve(t, live.NewPage(small().graph())))
	if err != nil {
		t.Fatal(err)
	}
	b := open(t, "http://attacker.example:"+at.Port()+"/", false, chromedp.Flag("host-resolver-rules", "MAP attacker.example 127.0.0.1"))
	if got := eval[string](b, "document.body.innerText"); !strings.Contains(got, "only at a loopback address") || strings.Contains(got, "spine1") {
		t.Errorf("another host's page has: %s", got)
	}
	if got := eval[int](b, `fetch("/graph.json").then(r => r.status)`); got == 200 {
		t.Error("another host reads the graph")
	}
}
