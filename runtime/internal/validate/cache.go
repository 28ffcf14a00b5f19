package validate

import "sync"

const (
	// generationSize is how many schemas each of a Cache's two generations holds.
	generationSize = 64
	// maxCachedSchema bounds the bytes of a schema that is kept.
	maxCachedSchema = 64 << 10
)

// Cache compiles the schemas of questions and keeps them by their text. It has two generations, and
// drops a schema that stays unused while generationSize others are used. The zero value is ready to
// use. A nil Cache compiles without keeping. A Cache is safe for concurrent use.
type Cache struct {
	mu            sync.Mutex
	recent, older map[string]*Schema
}

// Compile returns the compiled schema. It works like the function Compile with formats.
func (c *Cache) Compile(text []byte) (*Schema, error) {
	if c == nil || len(text) > maxCachedSchema {
		return Compile(string(text), true)
	}
	if schema := c.find(text); schema != nil {
		return schema, nil
	}
	schema, err := Compile(string(text), true)
	if err == nil {
		c.keep(string(text), schema)
	}
	return schema, err
}

// find returns a schema from the cache, or nil.
func (c *Cache) find(text []byte) *Schema {
	c.mu.Lock()
	defer c.mu.Unlock()
	if schema := c.recent[string(text)]; schema != nil {
		return schema
	}
	schema := c.older[string(text)]
	if schema != nil {
		c.add(string(text), schema)
	}
	return schema
}

func (c *Cache) keep(text string, schema *Schema) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.add(text, schema)
}

// add puts a schema into the recent generation. c.mu is held.
func (c *Cache) add(text string, schema *Schema) {
	if c.recent == nil || len(c.recent) >= generationSize {
		c.older, c.recent = c.recent, map[string]*Schema{}
	}
	c.recent[text] = schema
}
