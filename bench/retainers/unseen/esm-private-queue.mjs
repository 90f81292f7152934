import { Queue } from 'job-queue'
import common from './common.js'
const queue = new Queue()
class Mail { constructor (n) { this.to = 'a' + n; this.body = common.numbers(n, 300) } }
common.run(n => { queue.add(new Mail(n)) }, 800)
setInterval(() => queue.size, 1000)
