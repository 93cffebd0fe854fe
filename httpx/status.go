package httpx

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// StatusError is what policies see of a response that is a failure: one with a status of 5xx or, of a server that was asked,
// 429. A retry heeds its Retry-After header.
type StatusError struct {
	StatusCode int
	Header     http.Header

	// Response is the response that a [Transport] got. A retry's Retryable or a breaker's Classify may look into it, and read
	// its body, until the next attempt begins. Nil for a [Middleware].
	Response *http.Response
}

// Error tells the status.
func (e *StatusError) Error() string {
	text := "http: status " + strconv.Itoa(e.StatusCode)
	if name := http.StatusText(e.StatusCode); name != "" {
		text += " " + name
	}
	return text
}

// RetryAfter returns the wait that the Retry-After header asks for, given in seconds or as a date; 0 if there is none to
// heed: no header, one that cannot be read, a wait of 0, a date that has passed. Seconds beyond what a Duration holds are the
// longest one.
func (e *StatusError) RetryAfter() time.Duration {
	value := strings.TrimSpace(e.Header.Get("Retry-After"))
	if value == "" {
		return 0
	}
	if strings.Trim(value, "0123456789") == "" {
		seconds, _ := strconv.ParseInt(value, 10, 64) // the greatest one where it is out of range
		if seconds > int64(math.MaxInt64/time.Second) {
			return math.MaxInt64
		}
		return time.Duration(seconds) * time.Second
	}
	date, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	return max(0, time.Until(date))
}

// ErrorType returns the status, or _OTHER for one that is rare: the value of error.type in telemetry.
func (e *StatusError) ErrorType() string {
	switch e.StatusCode {
	case http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return strconv.Itoa(e.StatusCode)
	}
	return "_OTHER"
}

// failed reports whether policies of a client see a failure in a status.
func failed(status int) bool { return status >= 500 || status == http.StatusTooManyRequests }
