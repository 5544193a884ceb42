package compare

import (
	"fmt"
	"reflect"
	"strings"
)

// fields names the fields of a struct as its JSON does, those of a struct within it by a path.
func fields(path string, v any) map[string]string {
	m := map[string]string{}
	addFields(m, path, reflect.ValueOf(v))
	return m
}

func addFields(m map[string]string, path string, value reflect.Value) {
	switch value.Kind() {
	case reflect.Pointer:
		if !value.IsNil() {
			addFields(m, path, value.Elem())
		}
	case reflect.Struct:
		for i := range value.NumField() {
			name, option, _ := strings.Cut(value.Type().Field(i).Tag.Get("json"), ",")
			if option != "omitempty" || !value.Field(i).IsZero() {
				addFields(m, path+"."+name, value.Field(i))
			}
		}
	case reflect.Slice:
		if value.Type().Elem().Kind() == reflect.Struct {
			for i := range value.Len() {
				addFields(m, fmt.Sprintf("%s[%d]", path, i), value.Index(i))
			}
			return
		}
		m[path] = strings.Trim(fmt.Sprint(value.Interface()), "[]")
	default:
		m[path] = fmt.Sprint(value.Interface())
	}
}
