package httpx

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
)

// writer is a handler's ResponseWriter. It remembers what has been sent, whichever way that went.
type writer struct {
	http.ResponseWriter
	status int // that was sent; 0 while nothing was. A hijacked connection counts as 101
}

// flushing returns w with a method Flush if the server's writer has one: handlers ask for it.
func (w *writer) flushing() http.ResponseWriter {
	for inner := w.ResponseWriter; inner != nil; {
		switch f := inner.(type) {
		case http.Flusher, interface{ FlushError() error }:
			return flusher{w}
		case interface{ Unwrap() http.ResponseWriter }:
			inner = f.Unwrap()
		default:
			return w
		}
	}
	return w
}

type flusher struct{ *writer }

func (f flusher) Flush() { _ = f.FlushError() }

// Unwrap is how an http.ResponseController finds what is not here.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *writer) WriteHeader(status int) {
	w.ResponseWriter.WriteHeader(status)
	if status >= 200 || status == http.StatusSwitchingProtocols { // else it only informs, and the real one follows
		w.sent(status)
	}
}

func (w *writer) Write(p []byte) (int, error) {
	w.sent(http.StatusOK)
	return w.ResponseWriter.Write(p)
}

// WriteString saves a copy, as the server's own does.
func (w *writer) WriteString(s string) (int, error) {
	w.sent(http.StatusOK)
	return io.WriteString(w.ResponseWriter, s)
}

// ReadFrom leaves it to the server to send a file without copying.
func (w *writer) ReadFrom(src io.Reader) (int64, error) {
	n, err := io.Copy(w.ResponseWriter, src)
	if n > 0 {
		w.sent(http.StatusOK)
	}
	return n, err
}

// FlushError sends the header, too.
func (w *writer) FlushError() error {
	err := http.NewResponseController(w.ResponseWriter).Flush()
	if !errors.Is(err, http.ErrNotSupported) {
		w.sent(http.StatusOK)
	}
	return err
}

func (w *writer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err == nil {
		w.sent(http.StatusSwitchingProtocols)
	}
	return conn, rw, err
}

// Push is HTTP/2's.
func (w *writer) Push(target string, opts *http.PushOptions) error {
	if p, ok := w.ResponseWriter.(http.Pusher); ok {
		return p.Push(target, opts)
	}
	return http.ErrNotSupported
}

// sent remembers the first status.
func (w *writer) sent(status int) {
	if w.status == 0 {
		w.status = status
	}
}
