package compare

import (
	"fmt"
	"reflect"
	"strings"
)

// fields names the fields of a struct as its JSON does.
func fields(v any) map[string]string {
	m := map[string]string{}
	value := reflect.ValueOf(v)
	for i := range value.NumField() {
		name, _, _ := strings.Cut(value.Type().Field(i).Tag.Get("json"), ",")
		m["job."+name] = fmt.Sprint(value.Field(i).Interface())
	}
	return m
}
