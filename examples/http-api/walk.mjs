// node walk.mjs http://127.0.0.1:8090 QUEUE TASK PARAMS [CRONTASK] [TOKEN]
import { connect } from './api.mjs'

const [url, queue, task, params, crontask, token] = process.argv.slice(2)
const call = await connect(url, token)

const { id } = await call('enqueue', { queue, 'Idempotency-Key': `walk-${Date.now()}` }, {
  task,
  params: JSON.parse(params),
})
console.log(`enqueued ${id}`)
console.log(`status ${(await call('get_job', { queue, job_id: id })).state}`)
const why = await call('why_job', { queue, job_id: id })
console.log(`why ${why.findings[0].code}: ${why.findings[0].text}`)
await call('cancel_job', { queue, job_id: id }).catch((error) => console.log(`too late: ${error.message}`))
const again = await call('retry_job', { queue, job_id: id }, { params: { ...JSON.parse(params), again: true } })
console.log(`retried as ${again.id}`)
if (crontask) console.log(`run now ${(await call('run_crontask', { crontask }, {})).job}`)
