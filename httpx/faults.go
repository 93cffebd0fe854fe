package httpx

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"syscall"
)

// faultOf reports whether a request failed with err by a fault that stays, however often it is sent: in the request itself,
// in where it leads, or in the server's certificate. net/http tells most of these by text alone, so what does not look like
// trouble with the network or the server is looked for in the request.
func faultOf(req *http.Request, err error) bool {
	var (
		verification *tls.CertificateVerificationError
		authority    x509.UnknownAuthorityError
		hostname     x509.HostnameError
		invalid      x509.CertificateInvalidError
		record       tls.RecordHeaderError
		u            *url.Error
	)
	switch {
	case errors.As(err, &verification), errors.As(err, &authority), errors.As(err, &hostname), errors.As(err, &invalid):
		return true
	case errors.As(err, &record) && string(record.RecordHeader[:]) == "HTTP/", errors.Is(err, http.ErrSchemeMismatch):
		return true // https asked of a port that speaks http
	case errors.As(err, &u): // a redirect too many, or a URL that does not parse; the base follows redirects itself
		return !fromNetwork(u.Err)
	case req.URL == nil || req.Header == nil:
		return true
	case req.URL.Scheme != "http" && req.URL.Scheme != "https": // of a protocol that was registered, or of none
		return !fromNetwork(err)
	}
	return req.URL.Host == "" || !isToken(req.Method, true) || !sendable(req.Header) || !sendable(req.Trailer)
}

// fromNetwork reports whether the network or a context has a part in err.
func fromNetwork(err error) bool {
	var (
		n     net.Error
		errno syscall.Errno
	)
	return errors.As(err, &n) || errors.As(err, &errno) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// sendable reports whether net/http sends such a header.
func sendable(h http.Header) bool {
	for name, values := range h {
		if !isToken(name, false) {
			return false
		}
		for _, v := range values {
			for i := range len(v) {
				if c := v[i]; c < ' ' && c != '\t' || c == 0x7f {
					return false
				}
			}
		}
	}
	return true
}

// isToken reports whether s is a token of HTTP, or empty where that is allowed.
func isToken(s string, orEmpty bool) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case c == '!', '#' <= c && c <= '\'', c == '*', c == '+', c == '-', c == '.', '^' <= c && c <= '`', c == '|', c == '~':
		default:
			return false
		}
	}
	return s != "" || orEmpty
}
