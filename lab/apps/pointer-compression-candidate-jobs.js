'use strict'

// A scheduler has its plan in memory: half a million small tasks that refer to their neighbours,
// their owner and their tags. The plan is stable, and most of its memory is pointers.
const { appRun } = require('../app-run')
const { withJobs } = require('../with-jobs')

const TASKS = 620_000
/** @typedef {{ before: Task | null, owner: object, tags: object[], after: Task[] }} Task */
const owners = Array.from({ length: 500 }, (_, id) => ({ id }))
const tags = Array.from({ length: 60 }, (_, id) => ({ id }))
/** @type {Task[]} */
const plan = []
for (let i = 0; i < TASKS; i++) {
  const before = plan[i - 1] ?? null
  /** @type {Task} */
  const task = {
    before,
    owner: owners[i % 500],
    tags: [tags[i % 60], tags[i % 59], tags[i % 58]],
    after: []
  }
  before?.after.push(task)
  plan.push(task)
}

/** @param {number} number */
function next (number) {
  const due = []
  for (
    let task = plan[(number * 7919) % TASKS], i = 0;
    task && i < 200;
    task = task.after[0], i++
  ) {
    due.push({ owner: task.owner, tags: task.tags.length })
  }
  return due
}

withJobs(appRun({ work: 'jobs', figures: () => ({ tasks: plan.length }) }), {
  perSecond: 80,
  job: next
})
