-- What did `rxpath tune` change where, and does it still hold? Answers of `rxpath tune verify --json`, in tune/HOST.json; what does
-- not hold comes first. A journal that could not be read is a row without a setting: nobody knows its changes. A host without a row
-- has no change, or its file is empty: it did not answer.
WITH answers AS (
    SELECT parse_filename(filename, true) AS host, result, warnings
    FROM read_json('tune/*.json', filename = true, columns = {
        result: 'STRUCT(target VARCHAR, asked VARCHAR, "now" VARCHAR, state VARCHAR, why VARCHAR)[]',
        warnings: 'STRUCT(code VARCHAR, "text" VARCHAR)[]'
    })
)
SELECT *
FROM (
    SELECT host, one.target AS setting, one.asked, one."now", one.state, one.why
    FROM (SELECT host, unnest(result) AS one FROM answers)
    UNION ALL
    SELECT host, NULL, NULL, NULL, 'unread', one."text"
    FROM (SELECT host, unnest(warnings) AS one FROM answers)
    WHERE one.code = 'unreadable'
)
ORDER BY state IN ('holds', 'as-left'), setting, host;
