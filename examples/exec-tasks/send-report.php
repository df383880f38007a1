<?php
// A task in PHP: reads its job from standard input, ends with an exit code and a line of JSON.

declare(strict_types=1);

const EX_DATAERR = 65;  // a dead letter at once: no other attempt would end better
const EX_TEMPFAIL = 75; // another attempt, at a time of our own

$job = json_decode(stream_get_contents(STDIN), true, 512, JSON_THROW_ON_ERROR);
$params = $job['params'];

$to = $params['to'] ?? '';
if (!is_string($to) || !filter_var($to, FILTER_VALIDATE_EMAIL)) {
    fwrite(STDERR, 'to is no address: ' . json_encode($to) . "\n");
    exit(EX_DATAERR);
}

if (($params['busy_until_attempt'] ?? 0) > $job['attempt']) { // stands for a server that is busy
    fwrite(STDERR, "the mail server is busy\n");
    echo json_encode(['retry_after_seconds' => $params['retry_after_seconds'] ?? 30]), "\n";
    exit(EX_TEMPFAIL);
}

// What is written before the last line is logged, line by line. An uncaught exception ends PHP
// with exit code 255: a failed attempt, retried as the task's policy says.
echo "sending to $to\n";
if ($params['fail'] ?? false) {
    throw new RuntimeException('no connection');
}

// The job's id is the same in every attempt: whoever gets this twice can tell.
echo json_encode(['sent' => $to, 'message_id' => $job['id'], 'attempt' => $job['attempt']]), "\n";
