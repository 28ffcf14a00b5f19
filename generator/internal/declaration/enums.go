package declaration

import "github.com/mcptaskgen/mcptaskgen/generator/internal/model"

// readEnums reads the types under //mcptask:enum strings.
func (r *reader) readEnums(out *model.Package) {
	for _, spec := range r.specs {
		if spec.Assign.IsValid() {
			continue // an alias has the methods of its type
		}
		if consts := r.deriver.Names(r.objectOf(spec.Name)); consts != nil {
			r.enums = append(r.enums, spec)
			out.Enums = append(out.Enums, &model.Enum{Name: spec.Name.Name, Consts: consts})
		}
	}
}
