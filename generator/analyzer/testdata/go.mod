module example.com/app

go 1.25

require github.com/mcptaskgen/mcptaskgen v0.0.0

replace github.com/mcptaskgen/mcptaskgen => ./mcptask
