<?php
// php enqueue.php URL NAMESPACE/QUEUE TASK [PARAMS]    puts a job into the inbox, prints its id
//
// Needs nothing but PHP. Where phpredis or Predis is at hand the last step is one line:
//   $redis->lPush("tw1:{default/reports}:inbox", $document);

declare(strict_types=1);

[, $url, $place, $task, $params] = $argv + [3 => null, 4 => '{}'];
if ($task === null) {
    fwrite(STDERR, "usage: php enqueue.php URL NAMESPACE/QUEUE TASK [PARAMS]\n");
    exit(2);
}

try {
    $id = bin2hex(random_bytes(16)); // our own, so that the same document twice is one job
    echo enqueue(connect($url), $place, $id, $task, $params), "\n";
} catch (Throwable $error) {
    fwrite(STDERR, $error->getMessage() . "\n");
    exit(1);
}

/** Returns the id. Params stay as they were written: PHP would round large numbers. */
function enqueue($redis, string $place, string $id, string $task, string $params): string
{
    if (!is_object(json_decode($params, false, 100, JSON_THROW_ON_ERROR))) {
        throw new InvalidArgumentException('params have to be a JSON object');
    }
    $head = ['v' => 1, 'id' => $id, 'task' => $task, 'created_at' => round(microtime(true), 3)];
    $document = substr(json_encode($head, JSON_THROW_ON_ERROR), 0, -1) . ",\"params\":$params}";
    command($redis, 'LPUSH', "tw1:{{$place}}:inbox", $document);
    return $id;
}

/** A connection to redis://[USER:PASSWORD@]HOST[:PORT][/DB], or rediss:// for TLS. */
function connect(string $url)
{
    $parts = parse_url($url);
    if (!isset($parts['scheme'], $parts['host'])) {
        throw new InvalidArgumentException("$url is no URL such as redis://127.0.0.1:6379");
    }
    $transport = $parts['scheme'] === 'rediss' ? 'tls' : 'tcp';
    $address = "$transport://{$parts['host']}:" . ($parts['port'] ?? 6379);
    $redis = @stream_socket_client($address, $code, $reason, 10);
    if ($redis === false) {
        throw new RuntimeException("$address cannot be reached: $reason");
    }
    stream_set_timeout($redis, 10);
    $login = array_filter([rawurldecode($parts['user'] ?? ''), rawurldecode($parts['pass'] ?? '')], 'strlen');
    if ($login) {
        command($redis, 'AUTH', ...$login);
    }
    $database = ltrim($parts['path'] ?? '', '/');
    if ($database !== '' && $database !== '0') {
        command($redis, 'SELECT', $database);
    }
    return $redis;
}

/** One command of Redis' protocol whose reply is one line. Throws what the server refuses. */
function command($redis, string ...$words): string
{
    $framed = '*' . count($words) . "\r\n";
    foreach ($words as $word) {
        $framed .= '$' . strlen($word) . "\r\n$word\r\n";
    }
    for ($sent = 0; $sent < strlen($framed); $sent += $written) {
        $written = fwrite($redis, substr($framed, $sent));
        if (!$written) {
            throw new RuntimeException('Redis has closed the connection');
        }
    }
    $reply = fgets($redis);
    if ($reply === false) {
        throw new RuntimeException('Redis does not answer');
    }
    if ($reply[0] === '-') {
        throw new RuntimeException('Redis refuses: ' . rtrim(substr($reply, 1)));
    }
    return rtrim(substr($reply, 1));
}
