module github.com/mcptaskgen/mcptaskgen

go 1.25
