package proto

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
)

const (
	nonceLen    = 16
	helloMACLen = sha256.Size
	// beatMACLen is HMAC-SHA256 cut to 128 bits (RFC 2104, 5).
	beatMACLen = 16
)

type nonce [nonceLen]byte

// Keys are what every Pod of the lab derives from the lab's key. Without a key
// they only tell labs apart: nothing is secret then.
type Keys struct {
	root  []byte
	hello []byte
	// Tag opens every hello. It is compared before anything is computed.
	Tag uint64
}

// DeriveKeys derives them from the lab's key and name.
func DeriveKeys(key []byte, lab string) Keys {
	root := must(hkdf.Extract(sha256.New, key, []byte("c9s wire 1 "+lab)))
	return Keys{
		root:  root,
		hello: must(hkdf.Expand(sha256.New, root, "hello", 32)),
		Tag:   binary.BigEndian.Uint64(must(hkdf.Expand(sha256.New, root, "tag", 8))),
	}
}

// must is for HKDF, which fails only for lengths that are constants here.
func must(b []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return b
}

func sum(key []byte, parts ...[]byte) []byte {
	h := hmac.New(sha256.New, key)
	for _, p := range parts {
		h.Write(p)
	}
	return h.Sum(nil)
}

// direction holds the keys of what one end of a session sends.
type direction struct {
	Token uint64
	mac   []byte
	AEAD  cipher.AEAD
}

// deriveSession derives the keys of both directions from the hellos of both ends. initiator and responder are the two hellos.
func deriveSession(lab Keys, initiator, responder *hello) (fromInitiator, fromResponder direction) {
	secret := sum(lab.root, []byte("session"), initiator.identity(), responder.identity())
	one := func(info string) direction {
		b := must(hkdf.Expand(sha256.New, secret, info, 8+32+32))
		block, err := aes.NewCipher(b[40:72])
		if err != nil {
			panic(err)
		}
		gcm, err := cipher.NewGCM(block)
		if err != nil {
			panic(err)
		}
		return direction{Token: binary.BigEndian.Uint64(b), mac: b[8:40], AEAD: gcm}
	}
	return one("initiator"), one("responder")
}
