-- What did `rxpath tune` change where, and does it still hold? Answers of `rxpath tune verify --json`, in tune/HOST.json; what does
-- not hold comes first. A host without a row has no change.
SELECT host, one.target AS setting, one.asked, one."now", one.state, one.why
FROM (
    SELECT parse_filename(filename, true) AS host, unnest(result) AS one
    FROM read_json('tune/*.json', filename = true, columns = {
        result: 'STRUCT(target VARCHAR, asked VARCHAR, "now" VARCHAR, state VARCHAR, why VARCHAR)[]'
    })
)
ORDER BY one.state IN ('holds', 'as-left'), setting, host;
