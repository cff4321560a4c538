package org.apache.rocketmq.test.base;

import java.util.List;
import java.util.UUID;
import java.util.concurrent.CopyOnWriteArrayList;
import org.apache.rocketmq.client.producer.TransactionListener;
import org.apache.rocketmq.common.MQVersion;
import org.apache.rocketmq.remoting.protocol.RemotingCommand;
import org.apache.rocketmq.test.client.rmq.RMQAsyncSendProducer;
import org.apache.rocketmq.test.client.rmq.RMQNormalConsumer;
import org.apache.rocketmq.test.client.rmq.RMQNormalProducer;
import org.apache.rocketmq.test.client.rmq.RMQTransactionalProducer;
import org.apache.rocketmq.test.clientinterface.AbstractMQConsumer;
import org.apache.rocketmq.test.clientinterface.AbstractMQProducer;
import org.apache.rocketmq.test.factory.ConsumerFactory;
import org.apache.rocketmq.test.listener.AbstractListener;
import org.apache.rocketmq.test.util.MQAdmin;
import org.junit.Assert;

/**
 * What Apache's integration tests inherit: addresses, topics, groups and clients.
 *
 * <p>Stands before Apache's class of this name on the class path. That one starts two brokers in
 * the JVM; this one starts none and takes the addresses from system properties, so that the tests
 * run against whichever brokers the caller has.
 */
public class BaseConf {
    private static final int QUEUES_PER_BROKER = 8;
    private static final int TRIES = 5;

    public static String nsAddr = required("rocketpy.namesrv");
    protected static String clusterName = required("rocketpy.cluster");
    protected static String broker1Name = required("rocketpy.brokers").split(",")[0];
    protected static String broker2Name = required("rocketpy.brokers").split(",")[1];
    protected static int brokerNum = required("rocketpy.brokers").split(",").length;
    protected static int waitTime = 5;
    protected static int consumeTime = Integer.getInteger("rocketpy.consumeTimeMs", 120_000);
    protected static boolean debug = false;
    protected static List<Object> mqClients = new CopyOnWriteArrayList<>();

    static {
        System.setProperty(
            RemotingCommand.REMOTING_VERSION_KEY, Integer.toString(MQVersion.CURRENT_VERSION));
    }

    private static String required(String property) {
        String value = System.getProperty(property);
        if (value == null) {
            throw new IllegalStateException("give -D" + property + "=...");
        }
        return value;
    }

    public static String initTopic() {
        return initTopicWithName("topic-" + UUID.randomUUID());
    }

    public static String initTopicWithName(String topic) {
        for (int i = 0; i < TRIES; i++) {
            if (MQAdmin.createTopic(nsAddr, clusterName, topic, QUEUES_PER_BROKER)) {
                return topic;
            }
        }
        Assert.fail("topic " + topic + " could not be made in cluster " + clusterName);
        return topic;
    }

    public static String initConsumerGroup() {
        return initConsumerGroup("group-" + UUID.randomUUID());
    }

    public static String initConsumerGroup(String group) {
        Assert.assertTrue("group " + group, MQAdmin.createSub(nsAddr, clusterName, group));
        return group;
    }

    public static RMQNormalProducer getProducer(String address, String topic) {
        return getProducer(address, topic, false);
    }

    public static RMQNormalProducer getProducer(String address, String topic, boolean useTls) {
        return kept(new RMQNormalProducer(address, topic, useTls));
    }

    public static RMQNormalProducer getProducer(
            String address, String topic, String group, String instance) {
        return kept(new RMQNormalProducer(address, topic, group, instance));
    }

    public static RMQTransactionalProducer getTransactionalProducer(
            String address, String topic, TransactionListener listener) {
        return kept(new RMQTransactionalProducer(address, topic, false, listener));
    }

    public static RMQAsyncSendProducer getAsyncProducer(String address, String topic) {
        return kept(new RMQAsyncSendProducer(address, topic));
    }

    public static RMQNormalConsumer getConsumer(
            String address, String topic, String expression, AbstractListener listener) {
        return getConsumer(address, topic, expression, listener, false);
    }

    public static RMQNormalConsumer getConsumer(
            String address, String topic, String expression, AbstractListener listener,
            boolean useTls) {
        String group = initConsumerGroup();
        return getConsumer(address, group, topic, expression, listener, useTls);
    }

    public static RMQNormalConsumer getConsumer(
            String address, String group, String topic, String expression,
            AbstractListener listener) {
        return getConsumer(address, group, topic, expression, listener, false);
    }

    public static RMQNormalConsumer getConsumer(
            String address, String group, String topic, String expression,
            AbstractListener listener, boolean useTls) {
        return kept(ConsumerFactory.getRMQNormalConsumer(
            address, group, topic, expression, listener, useTls));
    }

    /** Ends the clients of the test that just ran: several classes may share this JVM. */
    public static void shutdown() {
        for (Object client : mqClients) {
            if (client instanceof AbstractMQProducer) {
                ((AbstractMQProducer) client).shutdown();
            } else if (client instanceof AbstractMQConsumer) {
                ((AbstractMQConsumer) client).shutdown();
            }
        }
        mqClients.clear();
    }

    private static <T> T kept(T client) {
        mqClients.add(client);
        return client;
    }
}
