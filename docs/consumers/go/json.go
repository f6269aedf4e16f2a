package touchstone

import (
	"math"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

const deepest = 100

var literal = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?`)

// parse reads JSON as map[string]any, []any, string, float64, bool and nil. encoding/json keeps the last of two equal
// keys and mends half a surrogate pair without a word; a thresholds file must have neither.
func parse(content []byte) any {
	if !utf8.Valid(content) {
		refuse("not UTF-8 text")
	}
	p := &parser{text: string(content)}
	value := p.value(0)
	p.space()
	if p.at < len(p.text) {
		refuse("not JSON: there is more behind its end")
	}
	return value
}

type parser struct {
	text string
	at   int
}

func (p *parser) space() {
	for p.at < len(p.text) && strings.IndexByte(" \t\r\n", p.text[p.at]) >= 0 {
		p.at++
	}
}

// take moves behind a word if it stands here, after white space.
func (p *parser) take(word string) bool {
	p.space()
	found := strings.HasPrefix(p.text[p.at:], word)
	if found {
		p.at += len(word)
	}
	return found
}

func (p *parser) must(word string) {
	if !p.take(word) {
		refuse("not JSON: %q is missing at byte %d", word, p.at)
	}
}

func (p *parser) value(depth int) any {
	if depth > deepest {
		refuse("nested too deeply")
	}
	switch {
	case p.take("{"):
		return p.object(depth)
	case p.take("["):
		list := []any{}
		for more := !p.take("]"); more; {
			list = append(list, p.value(depth+1))
			if more = p.take(","); !more {
				p.must("]")
			}
		}
		return list
	case p.take(`"`):
		return p.string()
	case p.take("true"):
		return true
	case p.take("false"):
		return false
	case p.take("null"):
		return nil
	}
	return p.number()
}

func (p *parser) object(depth int) any {
	object := map[string]any{}
	for more := !p.take("}"); more; {
		p.must(`"`)
		key := p.string()
		if _, twice := object[key]; twice {
			refuse("the key %q is there twice", key)
		}
		p.must(":")
		object[key] = p.value(depth + 1)
		if more = p.take(","); !more {
			p.must("}")
		}
	}
	return object
}

func (p *parser) number() float64 {
	text := literal.FindString(p.text[p.at:])
	if text == "" {
		refuse("not JSON at byte %d", p.at)
	}
	p.at += len(text)
	number, _ := strconv.ParseFloat(text, 64)
	if math.IsInf(number, 0) {
		refuse("the number %.20s is too large", text)
	}
	return number
}

var escapes = map[byte]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// string reads the rest of a text, whose first quotation mark was read.
func (p *parser) string() string {
	var text strings.Builder
	for {
		if p.at >= len(p.text) {
			refuse("not JSON: a text does not end")
		}
		sign := p.text[p.at]
		p.at++
		switch {
		case sign == '"':
			return text.String()
		case sign < 0x20:
			refuse("not JSON: a control character in a text")
		case sign != '\\':
			text.WriteByte(sign)
		case strings.HasPrefix(p.text[p.at:], "u"):
			text.WriteRune(p.escaped())
		default:
			if p.at >= len(p.text) || escapes[p.text[p.at]] == 0 {
				refuse("not JSON: no such escape")
			}
			text.WriteByte(escapes[p.text[p.at]])
			p.at++
		}
	}
}

// escaped reads uXXXX, or both halves of a surrogate pair.
func (p *parser) escaped() rune {
	first := p.hex()
	if !utf16.IsSurrogate(first) {
		return first
	}
	if strings.HasPrefix(p.text[p.at:], `\u`) {
		p.at++
		if whole := utf16.DecodeRune(first, p.hex()); whole != utf8.RuneError {
			return whole
		}
	}
	refuse("half a character in a text")
	return 0
}

func (p *parser) hex() rune {
	if p.at+5 > len(p.text) {
		refuse("not JSON: no such escape")
	}
	code, err := strconv.ParseUint(p.text[p.at+1:p.at+5], 16, 32)
	if err != nil {
		refuse("not JSON: no such escape")
	}
	p.at += 5
	return rune(code)
}

// canonical writes a value in the form of RFC 8785.
func canonical(value any) string {
	switch value := value.(type) {
	case map[string]any:
		keys := make([]string, 0, len(value))
		for key := range value {
			keys = append(keys, key)
		}
		sort.Slice(keys, func(i, j int) bool { return before(keys[i], keys[j]) })
		parts := make([]string, 0, len(keys))
		for _, key := range keys {
			parts = append(parts, quoted(key)+":"+canonical(value[key]))
		}
		return "{" + strings.Join(parts, ",") + "}"
	case []any:
		parts := make([]string, 0, len(value))
		for _, part := range value {
			parts = append(parts, canonical(part))
		}
		return "[" + strings.Join(parts, ",") + "]"
	case string:
		return quoted(value)
	case float64:
		return ecmaNumber(value)
	case bool:
		return strconv.FormatBool(value)
	}
	return "null"
}

// before compares by UTF-16 code units, in which characters beyond U+FFFF come before U+E000.
func before(one, other string) bool {
	first, second := utf16.Encode([]rune(one)), utf16.Encode([]rune(other))
	for i := 0; i < len(first) && i < len(second); i++ {
		if first[i] != second[i] {
			return first[i] < second[i]
		}
	}
	return len(first) < len(second)
}

func quoted(text string) string {
	var made strings.Builder
	made.WriteByte('"')
	for _, sign := range text {
		short := strings.IndexRune("\"\\\b\f\n\r\t", sign)
		switch {
		case short >= 0:
			made.WriteString(`\` + `"\bfnrt`[short:short+1])
		case sign < 0x20:
			made.WriteString(`\u00` + strconv.FormatInt(int64(sign)+0x100, 16)[1:])
		default:
			made.WriteRune(sign)
		}
	}
	return made.String() + `"`
}

// ecmaNumber writes a number as ECMAScript does.
func ecmaNumber(number float64) string {
	size := math.Abs(number)
	if size == 0 {
		return "0"
	}
	if 1e-6 <= size && size < 1e21 {
		return strconv.FormatFloat(number, 'f', -1, 64)
	}
	mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(number, 'e', -1, 64), "e")
	return mantissa + "e" + exponent[:1] + strings.TrimLeft(exponent[1:], "0")
}
