<?php
// php walk.php http://127.0.0.1:8090 QUEUE TASK PARAMS [CRONTASK] [TOKEN]
// A client of the HTTP API that knows nothing but its OpenAPI document. PHP 8, no package.
declare(strict_types=1);

final class Api
{
    private array $operations = [];

    public function __construct(private string $url, private string $token = '')
    {
        $document = $this->send('GET', "$url/api/v1/openapi.json", [], null);
        foreach ($document['paths'] as $path => $methods) {
            foreach ($methods as $method => $operation) {
                $places = array_column($operation['parameters'] ?? [], 'in', 'name');
                $this->operations[$operation['operationId']] = [$path, strtoupper($method), $places];
            }
        }
    }

    /** given: path and query parameters, and headers, by name; body: what is sent as JSON */
    public function call(string $name, array $given = [], ?array $body = null): array
    {
        [$path, $method, $places] = $this->operations[$name] ?? throw new RuntimeException("no operation $name");
        $query = $headers = [];
        foreach ($given as $key => $value) {
            match ($places[$key] ?? '') {
                'path' => $path = str_replace('{' . $key . '}', rawurlencode($value), $path),
                'query' => $query[$key] = $value,
                'header' => $headers[] = "$key: $value",
                default => throw new RuntimeException("$name has no parameter $key"),
            };
        }
        return $this->send($method, $this->url . $path . '?' . http_build_query($query), $headers, $body);
    }

    private function send(string $method, string $url, array $headers, ?array $body): array
    {
        if ($this->token !== '') {
            $headers[] = "Authorization: Bearer $this->token";
        }
        $options = ['method' => $method, 'ignore_errors' => true];
        if ($body !== null) {
            $headers[] = 'Content-Type: application/json';
            // An empty array is an object here: PHP cannot tell.
            $options['content'] = $body === [] ? '{}' : json_encode($body, JSON_THROW_ON_ERROR);
        }
        $options['header'] = implode("\r\n", $headers);
        $text = file_get_contents($url, false, stream_context_create(['http' => $options]));
        $found = json_decode($text ?: 'null', true, 512, JSON_THROW_ON_ERROR);
        if (isset($found['code'], $found['detail'])) {
            throw new RuntimeException("{$found['code']}: {$found['detail']}");
        }
        return $found;
    }
}

[, $url, $queue, $task, $params] = $argv;
$api = new Api($url, $argv[6] ?? '');
$params = json_decode($params, true, 512, JSON_THROW_ON_ERROR);

$order = ['task' => $task, 'params' => (object) $params];
$id = $api->call('enqueue', ['queue' => $queue, 'Idempotency-Key' => uniqid('walk-')], $order)['id'];
echo "enqueued $id\n";
echo 'status ', $api->call('get_job', ['queue' => $queue, 'job_id' => $id])['state'], "\n";
$why = $api->call('why_job', ['queue' => $queue, 'job_id' => $id])['findings'][0];
echo "why {$why['code']}: {$why['text']}\n";
try {
    $api->call('cancel_job', ['queue' => $queue, 'job_id' => $id], []);
} catch (RuntimeException $error) {
    echo "too late: {$error->getMessage()}\n";
}
$again = $api->call('retry_job', ['queue' => $queue, 'job_id' => $id], ['params' => ['again' => true] + $params]);
echo "retried as {$again['id']}\n";
if (($argv[5] ?? '') !== '') {
    echo 'run now ', $api->call('run_crontask', ['crontask' => $argv[5]], [])['job'], "\n";
}
